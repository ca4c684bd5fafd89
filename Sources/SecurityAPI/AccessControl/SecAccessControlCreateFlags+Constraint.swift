// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

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
