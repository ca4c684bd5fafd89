// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

public import Foundation
internal import KeychainCore

/// When an item can be read and who must be there: a protection class and constraints.
///
/// Made by `SecAccessControlCreateWithFlags`, handed over as the value of `kSecAttrAccessControl`. It never changes, and two of them are
/// equal when they say the same.
///
/// It is an `NSObject` so that it compares by content inside an `NSDictionary` too.
public final class SecAccessControl: NSObject, Sendable {
    let accessControl: AccessControl
    /// Whether the object may stand beside `kSecAttrAccessible` and in a synchronizable item: one that was made by flags may not, even by
    /// none.
    ///
    /// The one that comes with the attributes of an item without constraints says nothing but the protection class.
    let carriesConstraints: Bool

    /// An object made by flags.
    init(_ accessControl: AccessControl) {
        self.accessControl = accessControl
        carriesConstraints = true
    }

    /// The object that comes with the attributes of an item.
    init(of item: KeychainItem) {
        accessControl = item.accessControl
        carriesConstraints = !item.accessControl.isUnconstrained
    }

    /// Whether `object` is an access control object that says the same.
    public override func isEqual(_ object: Any?) -> Bool {
        (object as? SecAccessControl)?.accessControl == accessControl
    }

    /// The same for access control objects that say the same.
    public override var hash: Int { accessControl.hashValue }

    /// The protection class and what each operation needs, for people who debug.
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

/// The type number of access control objects, to be compared with what `CFGetTypeID(_:)` tells.
public func SecAccessControlGetTypeID() -> CFTypeID { CoreFoundationType.accessControl.rawValue }

/// Makes an access control object.
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values.
///   - flags: The constraints. `[]` asks nobody. `userPresence` goes with `applicationPassword` and `privateKeyUsage` only; `or` and
///     `and` exclude each other, and so do `biometryAny` and `biometryCurrentSet`. Two or more constraints are all needed, unless `or`
///     is among the flags.
///   - error: Where an error goes: `errSecParam` in `NSOSStatusErrorDomain`. The caller owns it (`takeRetainedValue()`).
/// - Returns: The object, nil after an error.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFString, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    let failure: KeychainFailure
    do throws(KeychainFailure) {
        guard let accessibility = Accessibility(rawValue: protection) else {
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

/// Makes an access control object, as the function above, from a protection class given as an object
/// (`kSecAttrAccessibleWhenUnlocked as CFTypeRef`).
///
/// - Parameters:
///   - allocator: `kCFAllocatorDefault`.
///   - protection: One of the `kSecAttrAccessible…` values. An object that is no string is `errSecParam`.
///   - flags: The constraints.
///   - error: Where an error goes. The caller owns it.
/// - Returns: The object, nil after an error.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    // No protection class is the empty string, so whatever is no string is refused like an unknown one.
    unsafe SecAccessControlCreateWithFlags(allocator, protection as? String ?? "", flags, error)
}
