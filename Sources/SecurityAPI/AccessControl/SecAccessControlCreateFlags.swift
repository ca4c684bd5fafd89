// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

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

extension SecAccessControlCreateFlags {
    /// What an item protected with these flags asks for, under the protection class `accessibility`.
    ///
    /// Source: Apple, `SecAccessControlCreateFlags`; which combinations are refused follows Apple's implementation.
    func accessControl(_ accessibility: Accessibility) throws(KeychainFailure) -> AccessControl {
        let person = try personConstraint()
        let constraint: AccessControl.Constraint? =
            switch (person, contains(.applicationPassword)) {
            case (let person, false): person
            case (nil, true): .applicationPassword
            case (.all(let parts)?, true): .all(parts + [.applicationPassword])
            case (let person?, true): .all([person, .applicationPassword])
            }
        return AccessControl(accessibility, constraint: constraint, allowsPrivateKeyUsageOnly: contains(.privateKeyUsage))
    }

    /// What is asked of the person, without the application's own password.
    private func personConstraint() throws(KeychainFailure) -> AccessControl.Constraint? {
        if contains(.userPresence) {
            guard subtracting([.userPresence, .applicationPassword, .privateKeyUsage]).isEmpty else {
                throw KeychainFailure(.parameter, "userPresence goes with applicationPassword and privateKeyUsage only")
            }
            return .userPresence
        }
        guard !isSuperset(of: [.or, .and]) else { throw KeychainFailure(.parameter, "the flags 'or' and 'and' exclude each other") }
        guard !isSuperset(of: [.biometryAny, .biometryCurrentSet]) else {
            throw KeychainFailure(.parameter, "biometryAny and biometryCurrentSet exclude each other")
        }
        // With fewer than two constraints 'or' and 'and' have nothing to join; bits that have no meaning are ignored.
        let parts = Self.constraints.filter { contains($0.flag) }.map(\.constraint)
        guard parts.count > 1 else { return parts.first }
        return contains(.or) ? .any(parts) : .all(parts)
    }

    /// In the order in which their keys are combined.
    private static let constraints: [(flag: SecAccessControlCreateFlags, constraint: AccessControl.Constraint)] = [
        (.biometryAny, .biometryAny), (.biometryCurrentSet, .biometryCurrentSet), (.devicePasscode, .devicePasscode),
        (.companion, .companion),
    ]
}
