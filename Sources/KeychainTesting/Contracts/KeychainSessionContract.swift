// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// One rule that every keychain with a lock keeps, with the check that shows it.
///
/// Run all of `KeychainSessionContract.rules`, each on a fresh subject.
package struct KeychainSessionContract: Sendable, CustomStringConvertible {
    package typealias Lockable = Keychain & KeychainSessionProviding

    /// What a rule is checked on.
    package struct Subject: Sendable {
        let keychain: any Lockable
        let other: any Lockable
        let letPass: @Sendable (_ seconds: UInt32) -> Void

        /// Takes an empty keychain without a passcode, and the same one as another process has it.
        ///
        /// `letPass` returns when that much time is over. Passcodes of five characters must be allowed.
        package init(keychain: any Lockable, other: any Lockable, letPass: @escaping @Sendable (_ seconds: UInt32) -> Void) {
            self.keychain = keychain
            self.other = other
            self.letPass = letPass
        }
    }

    /// The rule, in words.
    package let description: String
    private let check: @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void

    init(_ description: String, _ check: @escaping @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void) {
        self.description = description
        self.check = check
    }

    package static let rules = stateRules + passcodeRules

    /// What the keychain does against the rule, a line each; empty when it keeps it.
    package func violations(of subject: Subject) -> [String] {
        var findings = Findings()
        do throws(KeychainFailure) {
            try check(subject, &findings)
        } catch {
            findings.lines.append("unexpected failure: \(error)")
        }
        return findings.lines
    }

    /// Collects what was found.
    struct Findings {
        fileprivate(set) var lines: [String] = []

        mutating func expect(_ isKept: Bool, _ violation: @autoclosure () -> String) {
            if !isKept { lines.append(violation()) }
        }

        mutating func expect(_ keychain: any Lockable, is state: LockState, _ moment: String) throws(KeychainFailure) {
            let found = try keychain.sessionStatus().state
            expect(found == state, "\(moment), the state is \(found) and not \(state)")
        }

        /// Expects `body` to fail with `status`.
        mutating func expectFailure(
            _ status: KeychainStatus, _ what: String, _ body: () throws(KeychainFailure) -> Void
        ) {
            do throws(KeychainFailure) {
                try body()
                lines.append("\(what) succeeded")
            } catch {
                if error.status != status { lines.append("\(what) failed with \(error.status.rawValue), not \(status.rawValue)") }
            }
        }

        /// Expects an item of each class but the one that needs a passcode to be found, or to be locked, as the state says.
        mutating func expectItems(_ keychain: any Lockable, in state: LockState, _ moment: String) {
            for accessibility in Accessibility.withoutPasscode {
                let expected: KeychainStatus = accessibility.isReadable(in: state) ? .success : .interactionNotAllowed
                let found = keychain.statusOfReading(accessibility.rawValue)
                expect(found == expected, "\(moment), an item of class \(accessibility.rawValue) answers \(found.rawValue)")
            }
        }
    }
}

// MARK: Shorthand for the checks

extension Accessibility {
    static let withoutPasscode = allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }

    fileprivate func isReadable(in state: LockState) -> Bool {
        switch self {
        case .always, .alwaysThisDeviceOnly: true
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: state != .neverUnlocked
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: state == .unlocked
        }
    }
}

extension Keychain {
    /// Adds an item of each class that needs no passcode, each by the name of its class.
    func addItemOfEachClass() throws(KeychainFailure) {
        for accessibility in Accessibility.withoutPasscode { try addItem(accessibility.rawValue, accessibility) }
    }

    func addItem(_ account: String, _ accessibility: Accessibility) throws(KeychainFailure) {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("contract")])
        _ = try add(AddRequest(itemClass: .genericPassword, attributes: attributes, accessControl: AccessControl(accessibility)))
    }

    func statusOfReading(_ account: String) -> KeychainStatus {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("contract")])
        do throws(KeychainFailure) {
            let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
            return try copyMatching(MatchRequest(query: query)).count == 1 ? .success : .internal
        } catch {
            return error.status
        }
    }
}

extension KeychainSessionProviding {
    func set(_ passcode: String, autoLock: AutoLock = .standard) throws(KeychainFailure) {
        try setPasscode(try Passcode(text: passcode), autoLock: autoLock)
    }

    func unlock(with passcode: String, autoLock: AutoLock = .standard) throws(KeychainFailure) {
        try unlock(try Passcode(text: passcode), autoLock: autoLock)
    }

    func change(from current: String, to new: String, rotatingKeys: Bool = false) throws(KeychainFailure) {
        try changePasscode(
            from: try Passcode(text: current), to: try Passcode(text: new), rotatingKeys: rotatingKeys, autoLock: .standard)
    }

    func remove(_ passcode: String, deleting removal: PasscodeRemoval) throws(KeychainFailure) {
        try removePasscode(try Passcode(text: passcode), deleting: removal)
    }

    func removal(_ passcode: String) throws(KeychainFailure) -> PasscodeRemoval {
        try passcodeRemoval(try Passcode(text: passcode))
    }
}
#endif
