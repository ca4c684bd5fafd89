// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension KeychainSessionContract {
    static let passcodeRules = [
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
