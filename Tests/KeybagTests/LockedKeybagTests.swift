// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import Synchronization
import Testing

@testable import Keybag

@Suite("A keybag with a passcode")
struct LockedKeybagTests {
    @Test("Never unlocked: only the keys of the 'always' classes are available, and the others are locked")
    func neverUnlocked() throws {
        let store = try PasscodeStore()
        #expect(KeyProviderContract.violationsWhileLocked(of: store.keybag, isFirstUnlockDone: false) == [])
        #expect(KeyProviderContract.violationsWhileLocked(of: store.keybag.scopedToCall(for: .use), isFirstUnlockDone: false) == [])
        #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .neverUnlocked)
        #expect(try store.keybag.autoLock(at: PasscodeStore.lockEpoch) == nil)
    }

    @Test("Locked after an unlock: the keys of the 'after first unlock' classes are available too")
    func locked() throws {
        let store = try PasscodeStore()
        try store.unlock([.firstUnlock])
        #expect(KeyProviderContract.violationsWhileLocked(of: store.keybag, isFirstUnlockDone: true) == [])
        #expect(KeyProviderContract.violationsWhileLocked(of: store.keybag.scopedToCall(for: .use), isFirstUnlockDone: true) == [])
        #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .locked)
        #expect(try store.keybag.autoLock(at: PasscodeStore.lockEpoch) == nil)
    }

    @Test("Unlocked: all keys are available, and are those that the passcode unlocks")
    func unlocked() throws {
        let store = try PasscodeStore()
        try store.unlock()
        #expect(KeyProviderContract.violations(of: store.keybag, isPasscodeSet: true) == [])
        #expect(KeyProviderContract.violations(of: store.keybag.scopedToCall(for: .use), isPasscodeSet: true) == [])
        #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .unlocked)
        let document = store.keybag.document
        #expect(try store.keybag.copiedKeys(of: document) == store.unlockedKeys().copiedKeys(of: document))
    }

    @Test("A lock takes effect at the next call")
    func lockIsSeen() throws {
        let store = try PasscodeStore()
        try store.unlock()
        _ = try store.keybag.copiedKey(.whenUnlocked, 2)
        try store.holder.remove(.unlocked)
        let failure = #expect(throws: KeychainFailure.self) { try store.keybag.copiedKey(.whenUnlocked, 2) }
        #expect(failure?.status == .interactionNotAllowed && failure?.cause == .locked && failure?.requiresReopening == false)
        #expect(try store.keybag.copiedKey(.afterFirstUnlock, 2).count == ClassKey.byteCount)
    }

    @Test("Without a holder the state is 'never unlocked'")
    func noHolder() throws {
        let store = try PasscodeStore()
        let keybag = try OpenKeybag(
            copies: [store.change.document.encoded], storeID: store.storeID, deviceSecret: store.deviceSecret, holder: nil)
        #expect(KeyProviderContract.violationsWhileLocked(of: keybag, isFirstUnlockDone: false) == [])
        #expect(try keybag.lockState(at: PasscodeStore.lockEpoch) == .neverUnlocked)
    }

    @Test("The auto-lock rule is reported", arguments: [nil, 1, 900] as [UInt32?])
    func autoLock(_ seconds: UInt32?) throws {
        let store = try PasscodeStore()
        try store.unlock(timeoutSeconds: seconds)
        #expect(try store.keybag.autoLock(at: PasscodeStore.lockEpoch) == seconds.map(AutoLock.after) ?? .never)
    }

    @Test("An unknown class key is missing, and the holder is not asked")
    func missingGeneration() throws {
        let store = try PasscodeStore()
        #expect(store.keybag.availability(of: .whenUnlocked, generation: 3) == .missing)
        let failure = #expect(throws: KeychainFailure.self) { try store.keybag.copiedKey(.whenUnlocked, 3) }
        #expect(failure?.status == .decode && store.holder.loadCount == 0)
    }

    @Test("The 'always' classes work without the holder")
    func deviceBound() throws {
        let store = try PasscodeStore()
        store.holder.failure = KeychainFailure(.notAvailable, "the kernel refuses")
        #expect(try store.keybag.copiedKey(.always, 1).count == ClassKey.byteCount && store.holder.loadCount == 0)
    }

    @Test(
        "A failure of the holder is never reported as damage or absence",
        arguments: [KeychainStatus.notAvailable, .decode, .itemNotFound, .inputOutput, .internal])
    func failingHolder(_ status: KeychainStatus) throws {
        let store = try PasscodeStore()
        try store.unlock()
        store.holder.failure = KeychainFailure(status, "the kernel refuses", cause: .system(errno: 13), isDamage: true)
        let failure = #expect(throws: KeychainFailure.self) { try store.keybag.copiedKey(.whenUnlocked, 2) }
        #expect(failure?.status == .interactionNotAllowed && failure?.isDamage == false)
        #expect(failure?.cause == .system(errno: 13))
        #expect(store.keybag.availability(of: .whenUnlocked, generation: 2) == .locked)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try store.keybag.lockState(at: PasscodeStore.lockEpoch) }
    }

    @Test("One call asks the holder once for each slot, and caches the answer")
    func oneCall() throws {
        let store = try PasscodeStore()
        try store.unlock()
        let call = store.keybag.scopedToCall(for: .use)
        for _ in 0..<3 {
            _ = try call.copiedKey(.whenUnlocked, 2)
            _ = try call.copiedKey(.whenUnlockedThisDeviceOnly, 1)
            #expect(call.availability(of: .whenUnlocked, generation: 2) == .available)
        }
        #expect(store.holder.loadCount == 1)
        try store.holder.remove(.unlocked)
        _ = try call.scopedToCall(for: .use).copiedKey(.whenUnlocked, 2)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) {
            try store.keybag.scopedToCall(for: .use).copiedKey(.whenUnlocked, 2)
        }

        let lockedCall = store.keybag.scopedToCall(for: .use)
        #expect(lockedCall.availability(of: .whenUnlocked, generation: 2) == .locked)
        try store.unlock()
        #expect(lockedCall.availability(of: .whenUnlocked, generation: 2) == .locked)
    }

    /// Counts how often it is read.
    private final class CountedEpoch: LockEpochReading {
        private let count = Atomic(0)
        let failure: KeychainFailure?

        var readCount: Int { count.load(ordering: .sequentiallyConsistent) }

        init(failure: KeychainFailure? = nil) {
            self.failure = failure
        }

        func lockEpoch() throws(KeychainFailure) -> LockEpoch {
            count.add(1, ordering: .sequentiallyConsistent)
            if let failure { throw failure }
            return PasscodeStore.lockEpoch
        }
    }

    @Test("One call reads the lock epoch once for each slot that it uses, and not at all for other keys")
    func epochReads() throws {
        let store = try PasscodeStore()
        try store.unlock()
        let (call, epoch) = (store.keybag.scopedToCall(for: .use), CountedEpoch())
        for (id, expected) in [
            (ClassKeyID(.always, generation: 1), 0), (ClassKeyID(.whenUnlocked, generation: 3), 0),
            (ClassKeyID(.whenUnlocked, generation: 2), 1), (ClassKeyID(.whenUnlockedThisDeviceOnly, generation: 2), 1),
            (ClassKeyID(.afterFirstUnlock, generation: 2), 2), (ClassKeyID(.whenUnlocked, generation: 2), 2),
        ] {
            _ = call.availability(of: id.accessibility, generation: id.generation, lockEpoch: epoch)
            try? call.withClassKey(for: id.accessibility, generation: id.generation, lockEpoch: epoch) { _ throws(KeychainFailure) in }
            #expect(epoch.readCount == expected, "\(id)")
        }
    }

    @Test("A lock epoch that cannot be read is never reported as damage or absence, and the next call tries again")
    func unreadableEpoch() throws {
        let store = try PasscodeStore()
        try store.unlock()
        let epoch = CountedEpoch(failure: KeychainFailure(.itemNotFound, "the disk is gone", requiresReopening: true, isDamage: true))
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.scopedToCall(for: .use).withClassKey(for: .whenUnlocked, generation: 2, lockEpoch: epoch) {
                _ throws(KeychainFailure) in
            }
        }
        #expect(failure?.status == .interactionNotAllowed && failure?.isDamage == false && failure?.requiresReopening == true)
        #expect(store.holder.loadCount == 0)
        #expect(try store.keybag.scopedToCall(for: .use).copiedKey(.whenUnlocked, 2).count == ClassKey.byteCount)
    }

    @Test("Without a passcode the holder is never asked")
    func withoutPasscode() throws {
        let store = try PasscodeStore()
        let keybag = try store.opening(store.original.document)
        #expect(try keybag.lockState(at: PasscodeStore.lockEpoch) == .unlocked && keybag.autoLock(at: PasscodeStore.lockEpoch) == nil)
        #expect(KeyProviderContract.violations(of: keybag, isPasscodeSet: false) == [])
        #expect(store.holder.loadCount == 0)
    }
}

@Suite("Payloads of a key holder")
struct HolderPayloadTests {
    private static func payload(_ slot: KeyHolderSlot, of keys: UnlockedKeys) throws -> [UInt8] {
        try keys.payload(for: slot, at: .unused).copiedBytes()
    }

    private static func changed(_ store: PasscodeStore, rotatingKeys: Bool = false) throws -> OpenKeybag {
        try store.opening(
            store.keybag.changingPasscode(
                of: store.unlockedKeys(), to: PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost,
                rotatingKeys: rotatingKeys, deviceSecret: store.deviceSecret
            ).document)
    }

    @Test("A payload with any altered byte is discarded, and the keychain is locked", arguments: KeyHolderSlot.ofClassKeys)
    func altered(_ slot: KeyHolderSlot) throws {
        let store = try PasscodeStore()
        let good = try Self.payload(slot, of: store.unlockedKeys())
        let accessibility = slot == .unlocked ? ItemAccessibility.whenUnlocked : .afterFirstUnlock
        for index in good.indices {
            var altered = good
            altered[index] ^= 1
            store.holder.put(altered, in: slot)
            let failure = #expect(throws: KeychainFailure.self) { try store.keybag.copiedKey(accessibility, 2) }
            #expect(failure?.status == .interactionNotAllowed, "byte \(index)")
            #expect(store.holder.bytes(in: slot) == nil, "byte \(index)")
        }
        store.holder.put(good, in: slot)
        #expect(try store.keybag.copiedKey(accessibility, 2).count == ClassKey.byteCount)
    }

    @Test("A truncated or extended payload is discarded")
    func otherLengths() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        for bytes in (1..<good.count).map({ Array(good.prefix($0)) }) + [good + [0], good + good] {
            store.holder.put(bytes, in: .unlocked)
            #expect(store.keybag.availability(of: .whenUnlocked, generation: 2) == .locked, "\(bytes.count) bytes")
            #expect(store.holder.bytes(in: .unlocked) == nil, "\(bytes.count) bytes")
        }
    }

    @Test("The payload of another store, of the other slot, or of other keys is discarded")
    func foreign() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        let otherStore = try PasscodeStore()
        let otherKeys = try otherStore.unlockedKeys()
        let ofOtherStore = try Self.payload(.unlocked, of: otherKeys)
        // Sealed by a process that has the device secret, but not the passcode.
        let keys = try #require(
            try otherStore.keybag.payloadCipher.openedBytes(ofOtherStore, in: .unlocked, of: otherStore.keybag.identity))
        let forged = try store.keybag.payloadCipher.sealedBytes(keys, in: .unlocked, of: store.keybag.identity)
        #expect(forged.count == good.count)
        let foreign = [ofOtherStore, try Self.payload(.firstUnlock, of: store.unlockedKeys()), forged]
        for bytes in foreign {
            store.holder.put(bytes, in: .unlocked)
            #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .neverUnlocked)
            #expect(store.holder.bytes(in: .unlocked) == nil)
        }
    }

    @Test("One valid payload does not make others valid")
    func verifiedOnce() throws {
        let store = try PasscodeStore()
        try store.unlock()
        _ = try store.keybag.copiedKey(.whenUnlocked, 2)
        var forged = try #require(store.holder.bytes(in: .unlocked))
        forged[forged.count - 1] ^= 1
        store.holder.put(forged, in: .unlocked)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try store.keybag.copiedKey(.whenUnlocked, 2) }
        #expect(store.holder.bytes(in: .unlocked) == nil)
    }

    @Test("The payload of an earlier keybag is discarded", arguments: [false, true])
    func stale(_ rotatingKeys: Bool) throws {
        let store = try PasscodeStore()
        try store.unlock()
        let later = try Self.changed(store, rotatingKeys: rotatingKeys)
        #expect(try later.lockState(at: PasscodeStore.lockEpoch) == .neverUnlocked)
        #expect(KeyHolderSlot.ofClassKeys.allSatisfy { store.holder.bytes(in: $0) == nil })
    }

    @Test("The payload of a later keybag is discarded")
    func later() throws {
        let store = try PasscodeStore()
        let later = try Self.changed(store)
        store.holder.put(try Self.payload(.unlocked, of: store.unlockedKeys(of: later)), in: .unlocked)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try store.keybag.copiedKey(.whenUnlocked, 2) }
        #expect(store.holder.bytes(in: .unlocked) == nil)
    }

    @Test("A payload that replaced a refused one meanwhile is not discarded")
    func replacedMeanwhile() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        store.holder.put([1, 2, 3], in: .unlocked)
        store.holder.replaceAfterLoad(with: good, in: .unlocked)
        #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .neverUnlocked)
        #expect(try store.keybag.lockState(at: PasscodeStore.lockEpoch) == .unlocked)
    }
}
