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
        let advanceTime: @Sendable (_ seconds: UInt32) -> Void

        /// Takes an empty keychain without a passcode, and the same one as another process has it.
        ///
        /// `advanceTime` returns when that much time is over. Passcodes of five characters must be allowed.
        package init(keychain: any Lockable, other: any Lockable, advanceTime: @escaping @Sendable (_ seconds: UInt32) -> Void) {
            self.keychain = keychain
            self.other = other
            self.advanceTime = advanceTime
        }
    }

    /// The rule, in words.
    package let description: String
    private let check: @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void

    init(_ description: String, _ check: @escaping @Sendable (Subject, inout Findings) throws(KeychainFailure) -> Void) {
        self.description = description
        self.check = check
    }

    package static let rules = stateRules + passcodePolicy

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

extension KeychainSessionContract {
    static let stateRules = [
        KeychainSessionContract("Without a passcode a keychain is unlocked, and there is nothing to lock, unlock, change or remove") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            let status = try keychain.sessionStatus()
            findings.expect(status.state == .unlocked, "the state is \(status.state)")
            findings.expect(!status.isPasscodeSet, "a passcode is said to be set")
            findings.expect(status.autoLock == nil, "it is said to lock itself")
            for extent in [LockExtent.whenUnlocked, .everything] {
                findings.expectFailure(.authFailed, "a lock of \(extent)") { () throws(KeychainFailure) in try keychain.lock(extent) }
            }
            findings.expectFailure(.authFailed, "an unlock") { () throws(KeychainFailure) in try keychain.unlock(with: "123456") }
            findings.expectFailure(.authFailed, "a change") { () throws(KeychainFailure) in
                try keychain.change(from: "123456", to: "654321")
            }
            findings.expectFailure(.authFailed, "a removal") { () throws(KeychainFailure) in _ = try keychain.removal("123456") }
            findings.expectFailure(.authFailed, "another auto-lock") { () throws(KeychainFailure) in try keychain.setAutoLock(.never) }
            try keychain.addItemOfEachClass()
            findings.expectItems(keychain, in: .unlocked, "without a passcode")
        },
        KeychainSessionContract("Locking and unlocking lead from state to state, and each class follows") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            let steps: [(String, LockState, LockExtent?)] = [
                ("after an unlock", .unlocked, nil), ("locked", .locked, .whenUnlocked), ("locked again", .locked, .whenUnlocked),
                ("unlocked again", .unlocked, nil), ("locked wholly", .neverUnlocked, .everything),
                ("locked after that", .neverUnlocked, .whenUnlocked), ("locked wholly again", .neverUnlocked, .everything),
                ("unlocked after that", .unlocked, nil), ("unlocked while unlocked", .unlocked, nil),
            ]
            for (moment, state, extent) in steps {
                if let extent { try keychain.lock(extent) } else { try keychain.unlock(with: "123456") }
                try findings.expect(keychain, is: state, moment)
                findings.expectItems(keychain, in: state, moment)
                findings.expect(keychain.statusOfReading("absent") == .itemNotFound, "\(moment), what is absent is not said to be")
            }
        },
        KeychainSessionContract("A wrong passcode is refused and changes nothing") { subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456")
            for (extent, state) in [(LockExtent?.none, LockState.unlocked), (.whenUnlocked, .locked), (.everything, .neverUnlocked)] {
                if let extent { try keychain.lock(extent) }
                let wrong = "654321"
                findings.expectFailure(.authFailed, "an unlock") { () throws(KeychainFailure) in try keychain.unlock(with: wrong) }
                findings.expectFailure(.authFailed, "a change") { () throws(KeychainFailure) in try keychain.change(from: wrong, to: wrong)
                }
                findings.expectFailure(.authFailed, "a question") { () throws(KeychainFailure) in _ = try keychain.removal(wrong) }
                findings.expectFailure(.authFailed, "a removal") { () throws(KeychainFailure) in
                    try keychain.remove(wrong, deleting: PasscodeRemoval(items: []))
                }
                try findings.expect(keychain, is: state, "after a wrong passcode")
            }
            try keychain.unlock(with: "123456")
        },
        KeychainSessionContract("An unlocked keychain locks itself after its time without use, and without one it does not") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456", autoLock: .after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since it was set")
            findings.expect(try keychain.sessionStatus().autoLock == nil, "while locked, it is said to lock itself")
            findings.expectFailure(.interactionNotAllowed, "another auto-lock while locked") { () throws(KeychainFailure) in
                try keychain.setAutoLock(.never)
            }
            try keychain.unlock(with: "123456", autoLock: .after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since it was unlocked")
            try keychain.unlock(with: "123456", autoLock: .never)
            findings.expect(try keychain.sessionStatus().autoLock == .never, "it is not said that it never locks itself")
            subject.advanceTime(1)
            try findings.expect(keychain, is: .unlocked, "though it has no time")
            try keychain.setAutoLock(.after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since that was changed")
        },
        KeychainSessionContract("Whoever asks for the state does not keep the keychain unlocked") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456", autoLock: .after(seconds: 2))
            subject.advanceTime(1)
            for asked in [keychain, subject.other] { _ = try asked.sessionStatus() }
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time, in which only the state was asked for")
        },
        KeychainSessionContract("Another process sees each change at its next call") { subject, findings throws(KeychainFailure) in
            let (keychain, other) = (subject.keychain, subject.other)
            try keychain.addItemOfEachClass()
            findings.expectItems(other, in: .unlocked, "to another process, before a passcode was set")
            try findings.expect(other, is: .unlocked, "to another process, before a passcode was set")
            try keychain.set("123456")
            findings.expectItems(other, in: .unlocked, "to another process, after a passcode was set")
            findings.expect(try other.sessionStatus().isPasscodeSet, "to another process, no passcode was set")
            for (extent, state) in [(LockExtent.whenUnlocked, LockState.locked), (.everything, .neverUnlocked)] {
                try keychain.lock(extent)
                findings.expectItems(other, in: state, "to another process, after a lock")
                try findings.expect(other, is: state, "to another process, after a lock")
                try other.unlock(with: "123456")
                findings.expectItems(keychain, in: .unlocked, "after an unlock by another process")
                try findings.expect(keychain, is: .unlocked, "after an unlock by another process")
            }
            try keychain.change(from: "123456", to: "654321", rotatingKeys: true)
            findings.expectItems(other, in: .unlocked, "to another process, after a change")
            try other.lock(.everything)
            findings.expectFailure(.authFailed, "an unlock with the old passcode") { () throws(KeychainFailure) in
                try other.unlock(with: "123456")
            }
            try other.unlock(with: "654321")
            try keychain.remove("654321", deleting: try keychain.removal("654321"))
            findings.expectItems(other, in: .unlocked, "to another process, after a removal")
            findings.expect(try !other.sessionStatus().isPasscodeSet, "to another process, a passcode is still set")
        },
    ]
}

extension KeychainSessionContract {
    static let passcodePolicy = [
        KeychainSessionContract("A passcode is set once, and unlocks") { subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456", autoLock: .after(seconds: 100))
            let status = try keychain.sessionStatus()
            findings.expect(status.isPasscodeSet, "none is said to be set")
            findings.expect(status.state == .unlocked, "the state is \(status.state)")
            findings.expect(status.autoLock == .after(seconds: 100), "the time is another one")
            findings.expectItems(keychain, in: .unlocked, "after it was set")
            findings.expectFailure(.duplicateItem, "a second passcode") { () throws(KeychainFailure) in try keychain.set("654321") }
            try keychain.lock(.everything)
            findings.expectFailure(.duplicateItem, "a second passcode while locked") { () throws(KeychainFailure) in
                try keychain.set("654321")
            }
            try findings.expect(keychain, is: .neverUnlocked, "after a second passcode")
            findings.expectItems(keychain, in: .neverUnlocked, "after a second passcode")
            findings.expectFailure(.authFailed, "an unlock with the second one") { () throws(KeychainFailure) in
                try keychain.unlock(with: "654321")
            }
            try keychain.unlock(with: "123456")
            findings.expectItems(keychain, in: .unlocked, "after an unlock")
        },
        KeychainSessionContract("A changed passcode takes the place of the old one, and unlocks") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            try keychain.lock(.everything)
            try keychain.change(from: "123456", to: "654321")
            try findings.expect(keychain, is: .unlocked, "after a change")
            try keychain.change(from: "654321", to: "swordfish", rotatingKeys: true)
            findings.expectItems(keychain, in: .unlocked, "after a change of the keys too")
            try keychain.lock(.everything)
            for old in ["123456", "654321"] {
                findings.expectFailure(.authFailed, "an unlock with an old one") { () throws(KeychainFailure) in
                    try keychain.unlock(with: old)
                }
            }
            findings.expectItems(keychain, in: .neverUnlocked, "after old ones")
            try keychain.unlock(with: "swordfish")
            findings.expectItems(keychain, in: .unlocked, "after an unlock with the new one")
        },
        KeychainSessionContract("A removal names what goes with the passcode, and takes that and nothing else") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            let bound = Accessibility.whenPasscodeSetThisDeviceOnly
            findings.expectFailure(.authFailed, "an item that needs a passcode") { () throws(KeychainFailure) in
                try keychain.addItem("bound", bound)
            }
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            for account in ["bound", "bound too"] { try keychain.addItem(account, bound) }
            try keychain.lock(.everything)
            let removal = try keychain.removal("123456")
            let names = Set(removal.items.compactMap(\.name?.account))
            findings.expect(names == ["bound", "bound too"], "\(removal.items.count) items are named")
            try findings.expect(keychain, is: .neverUnlocked, "after the question")
            try keychain.remove("123456", deleting: removal)
            let status = try keychain.sessionStatus()
            findings.expect(!status.isPasscodeSet, "a passcode is still set")
            findings.expect(status.state == .unlocked, "after a removal, the state is \(status.state)")
            findings.expectItems(keychain, in: .unlocked, "after a removal")
            for account in ["bound", "bound too"] {
                findings.expect(keychain.statusOfReading(account) == .itemNotFound, "what needed the passcode is still there")
            }
            try keychain.set("654321")
            findings.expect(keychain.statusOfReading("bound") == .itemNotFound, "another passcode brings back what is gone")
            try keychain.addItem("bound", bound)
        },
        KeychainSessionContract("An item that came after the question is not deleted, and the passcode stays") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456")
            try keychain.addItem("asked", .whenPasscodeSetThisDeviceOnly)
            let removal = try keychain.removal("123456")
            try keychain.addItem("late", .whenPasscodeSetThisDeviceOnly)
            findings.expectFailure(.notAvailable, "a removal") { () throws(KeychainFailure) in
                try keychain.remove("123456", deleting: removal)
            }
            findings.expect(try keychain.sessionStatus().isPasscodeSet, "the passcode is gone")
            for account in ["asked", "late"] {
                findings.expect(keychain.statusOfReading(account) == .success, "the item '\(account)' is gone")
            }
        },
    ]
}
#endif
