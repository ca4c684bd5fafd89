// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore

/// The access control of an item: a protection class and constraints (Apple: SecAccessControl).
///
/// Create it with `SecAccessControlCreateWithFlags` and pass it as the value of `kSecAttrAccessControl`. It is immutable, and compares by
/// content.
///
/// It is an `NSObject`, so that it compares by content in an `NSDictionary` too.
public final class SecAccessControl: NSObject, Sendable {
    let accessControl: AccessControl
    /// Whether the object excludes `kSecAttrAccessible` and synchronizable items: an object created from flags does, even from none.
    ///
    /// The object among the attributes of an item without constraints contains only the protection class and excludes nothing.
    let carriesConstraints: Bool

    /// Creates an object from flags.
    init(_ accessControl: AccessControl) {
        self.accessControl = accessControl
        carriesConstraints = true
    }

    /// Creates the object among the attributes of an item.
    init(of item: KeychainItem) {
        accessControl = item.accessControl
        carriesConstraints = !item.accessControl.isUnconstrained
    }

    /// Returns whether `object` is an access control object with the same content.
    public override func isEqual(_ object: Any?) -> Bool {
        (object as? SecAccessControl)?.accessControl == accessControl
    }

    /// The hash of the content.
    public override var hash: Int { accessControl.hashValue }

    /// The protection class and the requirements of each operation, for debugging.
    public override var description: String {
        let decrypt = accessControl.allowsPrivateKeyUsageOnly ? "sign" : "decrypt"
        let condition = accessControl.constraint.map(Self.describe) ?? "true"
        return "<SecAccessControlRef: \(accessControl.accessibility.rawValue);\(decrypt)(\(condition));encrypt(true);delete(true)>"
    }

    /// The same as `description`.
    public override var debugDescription: String { description }

    private static func describe(_ constraint: AccessControl.Constraint) -> String {
        switch constraint {
        case .userPresence: "userPresence"
        case .devicePasscode: "devicePasscode"
        case .biometryAny: "biometryAny"
        case .biometryCurrentSet: "biometryCurrentSet"
        case .companion: "companion"
        case .applicationPassword: "applicationPassword"
        case .any(let parts): "any(\(parts.map(describe).joined(separator: ",")))"
        case .all(let parts): "all(\(parts.map(describe).joined(separator: ",")))"
        }
    }
}

/// The type identifier of access control objects, to compare with the result of `CFGetTypeID(_:)`.
public func SecAccessControlGetTypeID() -> CFTypeID { CoreFoundationType.accessControl.rawValue }

/// Creates an access control object.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values.
///   - flags: The constraints; `[]` for none. `userPresence` can be combined with `applicationPassword` and `privateKeyUsage` only. `or`
///     excludes `and`, and `biometryAny` excludes `biometryCurrentSet`. All constraints are required unless the flags contain `or`.
///   - error: Receives an error: `errSecParam` in `NSOSStatusErrorDomain`. The caller owns it (`takeRetainedValue()`).
/// - Returns: The object, nil after an error.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFString, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    let failure: KeychainFailure
    do throws(KeychainFailure) {
        guard let accessibility = ItemAccessibility(rawValue: protection) else {
            throw KeychainFailure(.parameter, "the protection is not one of the kSecAttrAccessible values")
        }
        return try SecAccessControl(flags.accessControl(accessibility))
    } catch let caught {
        failure = caught
    }
    // The pointer is the caller's, and the reference it receives is counted: both are the contract of Apple's function.
    unsafe error?.pointee = Unmanaged.passRetained(NSError(failure))
    return nil
}

/// Creates an access control object, like the function above, from a protection class given as an object
/// (`kSecAttrAccessibleWhenUnlocked as CFTypeRef`).
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values. For an object that is not a string the error is `errSecParam`.
///   - flags: The constraints.
///   - error: Receives an error. The caller owns it.
/// - Returns: The object, nil after an error.
@_disfavoredOverload
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    // The empty string is not a protection class, so an object that is not a string is rejected like an unknown class.
    unsafe SecAccessControlCreateWithFlags(allocator, protection as? String ?? "", flags, error)
}
