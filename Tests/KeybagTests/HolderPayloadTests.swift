// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

@Suite("What a holder gives back")
struct HolderPayloadTests {
    private static func payload(_ slot: KeyHolderSlot, of keys: UnlockedKeys) throws -> [UInt8] {
        try keys.payload(for: slot).copiedBytes()
    }

    private static func changed(_ store: PasscodeStore, rotatingKeys: Bool = false) throws -> OpenKeybag {
        try store.opening(
            store.keybag.changingPasscode(
                of: store.unlockedKeys(), to: PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost,
                rotatingKeys: rotatingKeys, deviceSecret: store.deviceSecret
            ).document)
    }

    @Test("With any one byte altered it is discarded, and the keychain locked", arguments: KeyHolderSlot.ofClassKeys)
    func altered(_ slot: KeyHolderSlot) throws {
        let store = try PasscodeStore()
        let good = try Self.payload(slot, of: store.unlockedKeys())
        let accessibility = slot == .unlocked ? Accessibility.whenUnlocked : .afterFirstUnlock
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

    @Test("Cut anywhere, or longer, it is discarded")
    func otherLengths() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        for bytes in (1..<good.count).map({ Array(good.prefix($0)) }) + [good + [0], good + good] {
            store.holder.put(bytes, in: .unlocked)
            #expect(store.keybag.availability(of: .whenUnlocked, generation: 2) == .locked, "\(bytes.count) bytes")
            #expect(store.holder.bytes(in: .unlocked) == nil, "\(bytes.count) bytes")
        }
    }

    @Test("That of another store, of the other slot, or of other keys is discarded")
    func foreign() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        let otherKeys = try PasscodeStore().unlockedKeys()
        let forged = good.prefix(27) + (try Self.payload(.unlocked, of: otherKeys)).dropFirst(27)
        let foreign = [
            try Self.payload(.unlocked, of: otherKeys), try Self.payload(.firstUnlock, of: store.unlockedKeys()), Array(forged),
        ]
        for bytes in foreign {
            store.holder.put(bytes, in: .unlocked)
            #expect(try store.keybag.lockState() == .neverUnlocked)
            #expect(store.holder.bytes(in: .unlocked) == nil)
        }
    }

    @Test("A payload that was found valid once vouches for no other")
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

    @Test("That of an earlier keybag is stale and discarded", arguments: [false, true])
    func stale(_ rotatingKeys: Bool) throws {
        let store = try PasscodeStore()
        try store.unlock()
        let later = try Self.changed(store, rotatingKeys: rotatingKeys)
        #expect(try later.lockState() == .neverUnlocked)
        #expect(KeyHolderSlot.ofClassKeys.allSatisfy { store.holder.bytes(in: $0) == nil })
    }

    @Test("That of a later keybag, held as this one's, is discarded too")
    func later() throws {
        let store = try PasscodeStore()
        let later = try Self.changed(store)
        store.holder.put(try Self.payload(.unlocked, of: store.unlockedKeys(of: later)), in: .unlocked)
        #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try store.keybag.copiedKey(.whenUnlocked, 2) }
        #expect(store.holder.bytes(in: .unlocked) == nil)
    }

    @Test("What has taken the place of a refused payload meanwhile is not discarded with it")
    func replacedMeanwhile() throws {
        let store = try PasscodeStore()
        let good = try Self.payload(.unlocked, of: store.unlockedKeys())
        store.holder.put([1, 2, 3], in: .unlocked)
        store.holder.replaceAfterLoad(with: good, in: .unlocked)
        #expect(try store.keybag.lockState() == .neverUnlocked)
        #expect(try store.keybag.lockState() == .unlocked)
    }
}
