// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import KeychainTestSupport

/// A rule that every keychain with a lock follows, with a check.
///
/// Run all of `KeychainSessionContract.rules`, each on a fresh subject.
package struct KeychainSessionContract: Sendable, CustomStringConvertible {
    package typealias Lockable = Keychain & KeychainSessionProviding

    /// The keychain that a rule is checked on.
    package struct Subject: Sendable {
        let keychain: any Lockable
        let other: any Lockable
        let advanceTime: @Sendable (_ seconds: UInt32) -> Void

        /// - Parameters:
        ///   - keychain: An empty keychain without a passcode, whose policy allows passcodes of five characters.
        ///   - other: The same keychain as another process opens it.
        ///   - advanceTime: Returns when this number of seconds has passed.
        package init(keychain: any Lockable, other: any Lockable, advanceTime: @escaping @Sendable (_ seconds: UInt32) -> Void) {
            self.keychain = keychain
            self.other = other
            self.advanceTime = advanceTime
        }
    }

    /// The rule, in one sentence.
    package let description: String
    private let check: @Sendable (Subject, inout ContractFindings) throws(KeychainFailure) -> Void

    init(_ description: String, _ check: @escaping @Sendable (Subject, inout ContractFindings) throws(KeychainFailure) -> Void) {
        self.description = description
        self.check = check
    }

    /// All rules; each needs a fresh subject.
    package static let rules = stateRules + passcodePolicy

    /// Returns a sentence for each violation of the rule by the keychain; empty if it follows the rule.
    package func violations(of subject: Subject) -> [String] {
        ContractFindings.violations { findings throws(KeychainFailure) in try check(subject, &findings) }
    }
}

extension ContractFindings {
    fileprivate typealias Lockable = KeychainSessionContract.Lockable

    fileprivate mutating func expect(_ keychain: any Lockable, is state: LockState, _ moment: String) throws(KeychainFailure) {
        let found = try keychain.sessionStatus().state
        expect(found == state, "\(moment): the state is \(found), not \(state)")
    }

    /// Expects the items of `addItemOfEachClass` to be readable or locked, according to `state`.
    fileprivate mutating func expectItems(_ keychain: any Lockable, in state: LockState, _ moment: String) {
        for accessibility in ItemAccessibility.withoutPasscode {
            let expected: KeychainStatus = accessibility.isReadable(in: state) ? .success : .interactionNotAllowed
            let found = keychain.statusOfReading(accessibility.rawValue)
            expect(found == expected, "\(moment): reading an item of class \(accessibility.rawValue) returns \(found.rawValue)")
        }
    }
}

// MARK: Shorthand for the checks

extension ItemAccessibility {
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
    /// Adds an item of each class that needs no passcode, with the name of the class as its account.
    func addItemOfEachClass() throws(KeychainFailure) {
        for accessibility in ItemAccessibility.withoutPasscode { try addItem(accessibility.rawValue, accessibility) }
    }

    func addItem(_ account: String, _ accessibility: ItemAccessibility) throws(KeychainFailure) {
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
        KeychainSessionContract("Without a passcode a keychain is unlocked, and locking, unlocking, changing, and removing fail") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            let status = try keychain.sessionStatus()
            findings.expect(status.state == .unlocked, "the state is \(status.state)")
            findings.expect(!status.isPasscodeSet, "the status says that a passcode is set")
            findings.expect(status.autoLock == nil, "the status has an auto-lock")
            for extent in [LockExtent.whenUnlocked, .everything] {
                findings.expectFailure(.authFailed, "a lock of \(extent)") { () throws(KeychainFailure) in try keychain.lock(extent) }
            }
            findings.expectFailure(.authFailed, "an unlock") { () throws(KeychainFailure) in try keychain.unlock(with: "123456") }
            findings.expectFailure(.authFailed, "a change") { () throws(KeychainFailure) in
                try keychain.change(from: "123456", to: "654321")
            }
            findings.expectFailure(.authFailed, "a removal") { () throws(KeychainFailure) in _ = try keychain.removal("123456") }
            findings.expectFailure(.authFailed, "setting the auto-lock") { () throws(KeychainFailure) in try keychain.setAutoLock(.never) }
            try keychain.addItemOfEachClass()
            findings.expectItems(keychain, in: .unlocked, "without a passcode")
        },
        KeychainSessionContract("Locking and unlocking change the state, and with it the readability of each class") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            let steps: [(String, LockState, LockExtent?)] = [
                ("after an unlock", .unlocked, nil), ("after a lock", .locked, .whenUnlocked),
                ("after a second lock", .locked, .whenUnlocked),
                ("after unlocking again", .unlocked, nil), ("after locking everything", .neverUnlocked, .everything),
                ("after locking that again partly", .neverUnlocked, .whenUnlocked),
                ("after locking everything again", .neverUnlocked, .everything),
                ("after unlocking everything", .unlocked, nil), ("after unlocking while unlocked", .unlocked, nil),
            ]
            for (moment, state, extent) in steps {
                if let extent { try keychain.lock(extent) } else { try keychain.unlock(with: "123456") }
                try findings.expect(keychain, is: state, moment)
                findings.expectItems(keychain, in: state, moment)
                findings.expect(keychain.statusOfReading("absent") == .itemNotFound, "\(moment): a missing item is not reported as missing")
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
                findings.expectFailure(.authFailed, "a query for a removal") { () throws(KeychainFailure) in _ = try keychain.removal(wrong)
                }
                findings.expectFailure(.authFailed, "a removal") { () throws(KeychainFailure) in
                    try keychain.remove(wrong, deleting: PasscodeRemoval(items: []))
                }
                try findings.expect(keychain, is: state, "after a wrong passcode")
            }
            try keychain.unlock(with: "123456")
        },
        KeychainSessionContract("An unused keychain locks itself after its auto-lock time; without one it stays unlocked") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456", autoLock: .after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since the passcode was set")
            findings.expect(try keychain.sessionStatus().autoLock == nil, "the status of a locked keychain has an auto-lock")
            findings.expectFailure(.interactionNotAllowed, "setting the auto-lock while locked") { () throws(KeychainFailure) in
                try keychain.setAutoLock(.never)
            }
            try keychain.unlock(with: "123456", autoLock: .after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since it was unlocked")
            try keychain.unlock(with: "123456", autoLock: .never)
            findings.expect(try keychain.sessionStatus().autoLock == .never, "the status does not say that the keychain never locks itself")
            subject.advanceTime(1)
            try findings.expect(keychain, is: .unlocked, "without an auto-lock time")
            try keychain.setAutoLock(.after(seconds: 1))
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time since the auto-lock was changed")
        },
        KeychainSessionContract("Reading the state does not postpone the auto-lock") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456", autoLock: .after(seconds: 2))
            subject.advanceTime(1)
            for asked in [keychain, subject.other] { _ = try asked.sessionStatus() }
            subject.advanceTime(1)
            try findings.expect(keychain, is: .locked, "after its time, during which only the state was read")
        },
        KeychainSessionContract("Another process sees each change at its next call") { subject, findings throws(KeychainFailure) in
            let (keychain, other) = (subject.keychain, subject.other)
            try keychain.addItemOfEachClass()
            findings.expectItems(other, in: .unlocked, "in another process, before a passcode was set")
            try findings.expect(other, is: .unlocked, "in another process, before a passcode was set")
            try keychain.set("123456")
            findings.expectItems(other, in: .unlocked, "in another process, after a passcode was set")
            findings.expect(try other.sessionStatus().isPasscodeSet, "in another process, no passcode was set")
            for (extent, state) in [(LockExtent.whenUnlocked, LockState.locked), (.everything, .neverUnlocked)] {
                try keychain.lock(extent)
                findings.expectItems(other, in: state, "in another process, after a lock")
                try findings.expect(other, is: state, "in another process, after a lock")
                try other.unlock(with: "123456")
                findings.expectItems(keychain, in: .unlocked, "after an unlock by another process")
                try findings.expect(keychain, is: .unlocked, "after an unlock by another process")
            }
            try keychain.change(from: "123456", to: "654321", rotatingKeys: true)
            findings.expectItems(other, in: .unlocked, "in another process, after a change")
            try other.lock(.everything)
            findings.expectFailure(.authFailed, "an unlock with the old passcode") { () throws(KeychainFailure) in
                try other.unlock(with: "123456")
            }
            try other.unlock(with: "654321")
            try keychain.remove("654321", deleting: try keychain.removal("654321"))
            findings.expectItems(other, in: .unlocked, "in another process, after a removal")
            findings.expect(try !other.sessionStatus().isPasscodeSet, "in another process, a passcode is still set")
        },
    ]
}

extension KeychainSessionContract {
    static let passcodePolicy = [
        KeychainSessionContract("A passcode can be set only once, and it unlocks the keychain") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456", autoLock: .after(seconds: 100))
            let status = try keychain.sessionStatus()
            findings.expect(status.isPasscodeSet, "the status says that no passcode is set")
            findings.expect(status.state == .unlocked, "the state is \(status.state)")
            findings.expect(status.autoLock == .after(seconds: 100), "the auto-lock time is wrong")
            findings.expectItems(keychain, in: .unlocked, "after it was set")
            findings.expectFailure(.duplicateItem, "a second passcode") { () throws(KeychainFailure) in try keychain.set("654321") }
            try keychain.lock(.everything)
            findings.expectFailure(.duplicateItem, "a second passcode while locked") { () throws(KeychainFailure) in
                try keychain.set("654321")
            }
            try findings.expect(keychain, is: .neverUnlocked, "after a second passcode")
            findings.expectItems(keychain, in: .neverUnlocked, "after a second passcode")
            findings.expectFailure(.authFailed, "an unlock with the second passcode") { () throws(KeychainFailure) in
                try keychain.unlock(with: "654321")
            }
            try keychain.unlock(with: "123456")
            findings.expectItems(keychain, in: .unlocked, "after an unlock")
        },
        KeychainSessionContract("A new passcode replaces the old one and unlocks the keychain") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            try keychain.lock(.everything)
            try keychain.change(from: "123456", to: "654321")
            try findings.expect(keychain, is: .unlocked, "after a change")
            try keychain.change(from: "654321", to: "swordfish", rotatingKeys: true)
            findings.expectItems(keychain, in: .unlocked, "after a change with key rotation")
            try keychain.lock(.everything)
            for old in ["123456", "654321"] {
                findings.expectFailure(.authFailed, "an unlock with an old passcode") { () throws(KeychainFailure) in
                    try keychain.unlock(with: old)
                }
            }
            findings.expectItems(keychain, in: .neverUnlocked, "after old passcodes were refused")
            try keychain.unlock(with: "swordfish")
            findings.expectItems(keychain, in: .unlocked, "after an unlock with the new one")
        },
        KeychainSessionContract("A removal lists the items that are deleted with the passcode, and deletes no others") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            let bound = ItemAccessibility.whenPasscodeSetThisDeviceOnly
            findings.expectFailure(.authFailed, "adding an item that needs a passcode") { () throws(KeychainFailure) in
                try keychain.addItem("bound", bound)
            }
            try keychain.addItemOfEachClass()
            try keychain.set("123456")
            for account in ["bound", "bound too"] { try keychain.addItem(account, bound) }
            try keychain.lock(.everything)
            let removal = try keychain.removal("123456")
            let names = Set(removal.items.compactMap(\.name?.account))
            findings.expect(names == ["bound", "bound too"], "\(removal.items.count) items are listed")
            try findings.expect(keychain, is: .neverUnlocked, "after the query")
            try keychain.remove("123456", deleting: removal)
            let status = try keychain.sessionStatus()
            findings.expect(!status.isPasscodeSet, "a passcode is still set")
            findings.expect(status.state == .unlocked, "after a removal, the state is \(status.state)")
            findings.expectItems(keychain, in: .unlocked, "after a removal")
            for account in ["bound", "bound too"] {
                findings.expect(keychain.statusOfReading(account) == .itemNotFound, "an item that needs the passcode still exists")
            }
            try keychain.set("654321")
            findings.expect(keychain.statusOfReading("bound") == .itemNotFound, "a new passcode restores a deleted item")
            try keychain.addItem("bound", bound)
        },
        KeychainSessionContract("A removal is refused if an item was added after the query; nothing is deleted") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456")
            try keychain.addItem("asked", .whenPasscodeSetThisDeviceOnly)
            let removal = try keychain.removal("123456")
            try keychain.addItem("late", .whenPasscodeSetThisDeviceOnly)
            findings.expectFailure(.notAvailable, "a removal") { () throws(KeychainFailure) in
                try keychain.remove("123456", deleting: removal)
            }
            findings.expect(try keychain.sessionStatus().isPasscodeSet, "the passcode was removed")
            for account in ["asked", "late"] {
                findings.expect(keychain.statusOfReading(account) == .success, "the item '\(account)' was deleted")
            }
        },
    ]
}
#endif
