// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

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
            subject.letPass(1)
            try findings.expect(keychain, is: .locked, "after its time since it was set")
            findings.expect(try keychain.sessionStatus().autoLock == nil, "while locked, it is said to lock itself")
            findings.expectFailure(.interactionNotAllowed, "another auto-lock while locked") { () throws(KeychainFailure) in
                try keychain.setAutoLock(.never)
            }
            try keychain.unlock(with: "123456", autoLock: .after(seconds: 1))
            subject.letPass(1)
            try findings.expect(keychain, is: .locked, "after its time since it was unlocked")
            try keychain.unlock(with: "123456", autoLock: .never)
            findings.expect(try keychain.sessionStatus().autoLock == .never, "it is not said that it never locks itself")
            subject.letPass(1)
            try findings.expect(keychain, is: .unlocked, "though it has no time")
            try keychain.setAutoLock(.after(seconds: 1))
            subject.letPass(1)
            try findings.expect(keychain, is: .locked, "after its time since that was changed")
        },
        KeychainSessionContract("Whoever asks for the state does not keep the keychain unlocked") {
            subject, findings throws(KeychainFailure) in
            let keychain = subject.keychain
            try keychain.set("123456", autoLock: .after(seconds: 2))
            subject.letPass(1)
            for asked in [keychain, subject.other] { _ = try asked.sessionStatus() }
            subject.letPass(1)
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
#endif
