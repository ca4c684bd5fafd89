// SPDX-License-Identifier: Apache-2.0

/// Who must be there, or what must be known, to use an item (Apple: SecAccessControl.h).
public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    /// The bits.
    public let rawValue: CFOptionFlags

    /// Takes the bits as they are; unknown ones have no meaning.
    public init(rawValue: CFOptionFlags) {
        self.rawValue = rawValue
    }

    /// The person must be there: biometry or the passcode.
    public static let userPresence = SecAccessControlCreateFlags(rawValue: 1 << 0)
    /// Any enrolled finger or face.
    public static let biometryAny = SecAccessControlCreateFlags(rawValue: 1 << 1)
    /// A finger or face that was enrolled when the item was added.
    public static let biometryCurrentSet = SecAccessControlCreateFlags(rawValue: 1 << 3)
    /// The passcode.
    public static let devicePasscode = SecAccessControlCreateFlags(rawValue: 1 << 4)
    /// A device of the person nearby.
    public static let companion = SecAccessControlCreateFlags(rawValue: 1 << 5)
    /// One of the constraints is enough.
    public static let or = SecAccessControlCreateFlags(rawValue: 1 << 14)
    /// All constraints are needed; the default.
    public static let and = SecAccessControlCreateFlags(rawValue: 1 << 15)
    /// A private key may be used to sign and to agree on keys.
    ///
    /// Means nothing for a password but that it cannot be read back.
    public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1 << 30)
    /// A password that the program itself supplies, besides the constraints.
    public static let applicationPassword = SecAccessControlCreateFlags(rawValue: 1 << 31)

    /// The older name of `biometryAny`.
    public static let touchIDAny = biometryAny
    /// The older name of `biometryCurrentSet`.
    public static let touchIDCurrentSet = biometryCurrentSet
    /// The older name of `companion`.
    public static let watch = companion
}
