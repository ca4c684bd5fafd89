// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("A keychain whose protector is a chip")
struct ChipProtectorTests {
    @Test("While the secret is still held, the report tells that the chip was cleared: now the keychain can be moved")
    func clearedWhileOpen() throws {
        try ProtectedHome.with { home in
            try home.keychain(newWith: .tpm2).addItem("there", "one")
            func isPresent() throws -> Bool? {
                switch try home.keychain().report(asksChip: true).store?.chip {
                case .status: true
                case .other: false
                case .silent, nil: nil
                }
            }
            #expect(try isPresent() == true)
            home.chip.clear()
            #expect(try isPresent() == false)
            _ = try home.keychain().setProtector(.keyFile, passcode: nil, makingRecoveryKey: false)
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }

    @Test("It is made without a key file, and what the chip gave is held: nobody asks it twice, locked or not")
    func held() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            #expect(try home.keyFiles() == [] && keychain.protectorKind == .tpm2)
            let count = home.chip.unsealCount
            #expect(try home.keychain().secret(of: "there") == "one" && home.chip.unsealCount == count)
            try keychain.set("Druidia")
            try keychain.lock(.everything)
            home.chip.setReachable(false)
            #expect(try home.keychain().sessionStatus().state == .neverUnlocked)
            home.chip.setReachable(true)
            try home.forgetWhatIsHeld(keychain)
            let countBefore = home.chip.unsealCount
            #expect(try home.keychain().sessionStatus().state == .neverUnlocked && home.chip.unsealCount == countBefore + 1)
        }
    }

    @Test("What is held and opens the keybag no longer is discarded, and the chip asked")
    func heldOfAnotherKeybag() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            let id = try #require(try keychain.report().store?.id)
            let holder = ProcessMemoryKeyHolder(storeID: id, epochSource: { LockEpoch(rawValue: 0) })
            for bytes in [[UInt8](repeating: 7, count: 49), [1] + id.bytes + [UInt8](repeating: 7, count: 32), [1], [2]] {
                try holder.hold(bytes, in: .device, timeoutSeconds: nil)
                let count = home.chip.unsealCount
                #expect(try home.keychain().secret(of: "there") == "one" && home.chip.unsealCount == count + 1)
            }
        }
    }

    @Test("Nothing of it is held once the keychain has another protector")
    func notHeldAfterMove() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            let id = try #require(try keychain.report().store?.id)
            #expect(ProcessMemoryKeys.ofThisProcess.isHolding(.device, of: id))
            _ = try keychain.protect(.keyFile)
            #expect(!ProcessMemoryKeys.ofThisProcess.isHolding(.device, of: id))
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }

    @Test("A wrong passcode is counted by the chip; locked out, a prompt's passcode and an unlock say when to try again")
    func lockedOut() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.set("Druidia")
            try keychain.lock(.everything)
            for count: UInt32 in 1...3 {
                #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "Spaceball") }
                #expect(try home.chip.status().failedTryCount == count)
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.unlock(with: "Druidia") }
            #expect(failure?.status == .authFailed && failure?.refusal == .lockedOut(seconds: 600))
            guard case .status(let status) = try keychain.report(asksChip: true).store?.chip else {
                Issue.record("no status")
                return
            }
            #expect(status.isLockedOut && status.failedTryCount == 3)
        }
    }

    @Test("The passcode can be changed, set anew and removed, and a costlier policy raises its cost")
    func passcodeChanges() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .tpm2)
            try keychain.addItem("there", "one")
            try keychain.set("Druidia")
            try keychain.changePasscode(
                from: Passcode(text: "Druidia"), to: Passcode(text: "Vespa-1"), rotatingKeys: true, autoLock: .standard)
            try home.forgetWhatIsHeld(keychain)
            #expect(throws: KeychainFailure(.authFailed, "")) { try keychain.unlock(with: "Druidia") }
            let costly = try LocalKeychain.cheaplyUnlocked(home: home.path, holder: .processMemory, memoryMebibytes: 2) {
                $0.sealingDevice = home.chip
            }
            try costly.unlock(with: "Vespa-1")
            let raised = try #require(try costly.report().store?.keybagGeneration)
            #expect(try home.keychain().secret(of: "there") == "one")
            try costly.unlock(with: "Vespa-1")
            #expect(try costly.report().store?.keybagGeneration == raised)
            let passcode = try Passcode(text: "Vespa-1")
            try costly.removePasscode(passcode, deleting: costly.passcodeRemoval(passcode))
            #expect(try home.keychain().secret(of: "there") == "one")
        }
    }
}
