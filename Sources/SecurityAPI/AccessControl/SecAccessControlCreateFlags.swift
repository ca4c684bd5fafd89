// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The constraints on the use of an item (Apple: SecAccessControl.h).
public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    /// The bits.
    public let rawValue: CFOptionFlags

    /// Creates flags from bits; unknown bits have no effect.
    public init(rawValue: CFOptionFlags) {
        self.rawValue = rawValue
    }

    /// User presence: biometry or the passcode.
    public static let userPresence = SecAccessControlCreateFlags(rawValue: 1 << 0)
    /// Any enrolled fingerprint or face.
    public static let biometryAny = SecAccessControlCreateFlags(rawValue: 1 << 1)
    /// A fingerprint or face that was enrolled when the item was added.
    public static let biometryCurrentSet = SecAccessControlCreateFlags(rawValue: 1 << 3)
    /// The passcode.
    public static let devicePasscode = SecAccessControlCreateFlags(rawValue: 1 << 4)
    /// A companion device nearby.
    public static let companion = SecAccessControlCreateFlags(rawValue: 1 << 5)
    /// One of the constraints is sufficient.
    public static let or = SecAccessControlCreateFlags(rawValue: 1 << 14)
    /// All constraints are required; the default.
    public static let and = SecAccessControlCreateFlags(rawValue: 1 << 15)
    /// A private key may be used to sign and to agree on keys.
    ///
    /// A password with this flag cannot be read.
    public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1 << 30)
    /// A password that the program supplies, in addition to the constraints.
    public static let applicationPassword = SecAccessControlCreateFlags(rawValue: 1 << 31)

    /// The older name of `biometryAny`.
    public static let touchIDAny = biometryAny
    /// The older name of `biometryCurrentSet`.
    public static let touchIDCurrentSet = biometryCurrentSet
    /// The older name of `companion`.
    public static let watch = companion
}

extension SecAccessControlCreateFlags {
    /// Returns the access control of an item with these flags and the protection class `accessibility`.
    ///
    /// Source: Apple, `SecAccessControlCreateFlags`. It rejects the same combinations as Apple's implementation.
    func accessControl(_ accessibility: ItemAccessibility) throws(KeychainFailure) -> AccessControl {
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

    /// The constraints that the user satisfies, without the application password.
    private func personConstraint() throws(KeychainFailure) -> AccessControl.Constraint? {
        if contains(.userPresence) {
            guard subtracting([.userPresence, .applicationPassword, .privateKeyUsage]).isEmpty else {
                throw KeychainFailure(.parameter, "userPresence can be combined only with applicationPassword and privateKeyUsage")
            }
            return .userPresence
        }
        guard !isSuperset(of: [.or, .and]) else { throw KeychainFailure(.parameter, "the flags 'or' and 'and' exclude each other") }
        guard !isSuperset(of: [.biometryAny, .biometryCurrentSet]) else {
            throw KeychainFailure(.parameter, "biometryAny and biometryCurrentSet exclude each other")
        }
        // With fewer than two constraints `or` and `and` have no effect; unknown bits are ignored.
        let parts = Self.constraints.filter { contains($0.flag) }.map(\.constraint)
        guard parts.count > 1 else { return parts.first }
        return contains(.or) ? .any(parts) : .all(parts)
    }

    /// The constraints in the order in which their keys are combined.
    private static let constraints: [(flag: SecAccessControlCreateFlags, constraint: AccessControl.Constraint)] = [
        (.biometryAny, .biometryAny), (.biometryCurrentSet, .biometryCurrentSet), (.devicePasscode, .devicePasscode),
        (.companion, .companion),
    ]
}
