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
