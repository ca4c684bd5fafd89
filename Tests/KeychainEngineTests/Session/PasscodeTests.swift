// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The passcode of a keychain in a file")
struct PasscodeTests {
    private static let classes = ItemAccessibility.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }

    private func fill(_ keychain: LocalKeychain) throws {
        for accessibility in Self.classes {
            try keychain.addItem(accessibility.rawValue, "secret \(accessibility.rawValue)", accessibility)
        }
    }

    private func statuses(_ keychain: LocalKeychain) -> [ItemAccessibility: KeychainStatus] {
        var statuses: [ItemAccessibility: KeychainStatus] = [:]
        for accessibility in Self.classes {
            do throws(KeychainFailure) {
                let secret = try keychain.secret(of: accessibility.rawValue)
                statuses[accessibility] = secret == "secret \(accessibility.rawValue)" ? .success : .internal
            } catch {
                statuses[accessibility] = error.status
            }
        }
        return statuses
    }

    private static func expected(_ state: LockState) -> [ItemAccessibility: KeychainStatus] {
        Dictionary(
            uniqueKeysWithValues: classes.map { accessibility in
                switch accessibility {
                case .always, .alwaysThisDeviceOnly: (accessibility, .success)
                case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly:
                    (accessibility, state == .neverUnlocked ? .interactionNotAllowed : .success)
                default: (accessibility, state == .unlocked ? .success : .interactionNotAllowed)
                }
            })
    }

    @Test("A passcode also protects earlier items, in each lock state", arguments: [KeyHolderSelection.automatic, .processMemory])
    func setAndLock(holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, _ in
            try fill(keychain)
            try keychain.set("swordfish")
            #expect(statuses(keychain) == Self.expected(.unlocked))
            try keychain.lock(.whenUnlocked)
            #expect(try keychain.sessionStatus().state == .locked)
            #expect(statuses(keychain) == Self.expected(.locked))
            try keychain.lock(.everything)
            #expect(try keychain.sessionStatus().state == .neverUnlocked)
            #expect(statuses(keychain) == Self.expected(.neverUnlocked))
            try keychain.unlock(with: "swordfish")
            #expect(try keychain.sessionStatus().state == .unlocked)
            #expect(statuses(keychain) == Self.expected(.unlocked))
        }
    }

    @Test("After setting a passcode, no row and no key of an older generation remains")
    func rewrapping() throws {
        try withLocalKeychain { keychain, _ in
            for number in 0..<300 { try keychain.addItem("\(number)", "secret \(number)") }
            try keychain.set("swordfish")
            let report = try #require(try keychain.report().store)
            #expect(report.pendingRewrapCount == 0)
            #expect(report.keybagGeneration == 3, "the passcode is one change, dropping the old keys another")
            #expect(try keychain.secret(of: "299") == "secret 299")
        }
    }

    @Test("A changed passcode unlocks and the old one does not", arguments: [false, true])
    func change(rotatingKeys: Bool) throws {
        try withLocalKeychain { keychain, _ in
            try fill(keychain)
            try keychain.set("swordfish")
            try keychain.changePasscode(
                from: try Passcode(text: "swordfish"), to: try Passcode(text: "12345"), rotatingKeys: rotatingKeys, autoLock: .never)
            #expect(statuses(keychain) == Self.expected(.unlocked))
            try keychain.lock(.everything)
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "swordfish") }
            #expect(try keychain.sessionStatus().state == .neverUnlocked)
            try keychain.unlock(with: "12345")
            #expect(statuses(keychain) == Self.expected(.unlocked))
        }
    }

    @Test("Removing the passcode deletes the confirmed items, and all others are readable without one")
    func remove() throws {
        try withLocalKeychain { keychain, _ in
            try fill(keychain)
            try keychain.set("swordfish")
            try keychain.addItem("bound", "gone", .whenPasscodeSetThisDeviceOnly)
            let removal = try keychain.passcodeRemoval(try Passcode(text: "swordfish"))
            #expect(removal.items.map(\.name) == [PasscodeRemoval.Name(service: "test", account: "bound")])
            try keychain.removePasscode(try Passcode(text: "swordfish"), deleting: removal)
            #expect(try keychain.sessionStatus().isPasscodeSet == false)
            #expect(statuses(keychain) == Self.expected(.unlocked))
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try keychain.secret(of: "bound") }
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.addItem("bound", "new", .whenPasscodeSetThisDeviceOnly) }
        }
    }

    @Test("An item added after the confirmation prevents the removal of the passcode")
    func removalRequiresConfirmation() throws {
        try withLocalKeychain { keychain, _ in
            try keychain.set("swordfish")
            let removal = try keychain.passcodeRemoval(try Passcode(text: "swordfish"))
            try keychain.addItem("late", "secret", .whenPasscodeSetThisDeviceOnly)
            #expect(throws: KeychainFailure(.notAvailable, "")) {
                try keychain.removePasscode(try Passcode(text: "swordfish"), deleting: removal)
            }
            #expect(try keychain.secret(of: "late") == "secret")
        }
    }

    @Test("Another process sees every change of passcode and lock at its next call")
    func twoObjects() throws {
        try withLocalKeychain { first, home in
            let second = try LocalKeychain.withCheapPasscode(home: home)
            try first.addItem("a", "1")
            #expect(try second.secret(of: "a") == "1")
            try first.set("swordfish")
            #expect(try second.secret(of: "a") == "1")
            try second.addItem("b", "2")
            try first.lock(.whenUnlocked)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try second.secret(of: "a") }
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try second.addItem("c", "3") }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try second.secret(of: "absent") }
            try second.unlock(with: "swordfish")
            #expect(try first.secret(of: "b") == "2")
            try first.lock(.whenUnlocked)
            try first.removePasscode(
                try Passcode(text: "swordfish"), deleting: try first.passcodeRemoval(try Passcode(text: "swordfish")))
            #expect(try second.secret(of: "a") == "1")
        }
    }

    @Test("A passcode that the policy rejects, or that is not UTF-8, changes nothing")
    func refused() throws {
        try withLocalKeychain { keychain, _ in
            try keychain.addItem("a", "1")
            #expect(throws: KeychainFailure(.parameter, "")) { try keychain.set("123") }
            #expect(throws: KeychainFailure(.parameter, "")) { try keychain.set("") }
            #expect(try keychain.sessionStatus().isPasscodeSet == false)
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.lock(.whenUnlocked) }
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "swordfish") }
            try keychain.set("swordfish")
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try keychain.set("swordfish") }
        }
    }

    @Test("A passcode is normalized, so composed and decomposed text are equal")
    func normalization() throws {
        try withLocalKeychain { keychain, _ in
            try keychain.set("Sch\u{F6}n!")
            try keychain.lock(.everything)
            try keychain.unlock(with: "Scho\u{308}n!")
            #expect(try keychain.sessionStatus().state == .unlocked)
        }
    }
}

@Suite("The pause between two batches of a rewrapping")
struct RewrappingPauseTests {
    @Test(
        "The pause is as long as the batch took, within a minimum and a maximum",
        arguments: [(0, 1_000_000), (7_000_000, 7_000_000), (50_000_000, 50_000_000), (UInt64.max, 50_000_000)] as [(UInt64, UInt64)])
    func length(batch: UInt64, pause: UInt64) {
        #expect(RewrappingPause.length(afterNanoseconds: batch) == pause)
    }
}
