// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("Sealed payloads of a key holder")
struct HolderPayloadCipherTests {
    struct Vectors: Decodable, Sendable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let sealedDeviceSecret: Hexadecimal
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let slot: String
        let generation: UInt64
        let tag: Hexadecimal
        let secret: Hexadecimal
        let payload: Hexadecimal
        let epoch: Int64

        var lockEpoch: LockEpoch { LockEpoch(rawValue: epoch) }
        var testDescription: String { "\(slot), \(secret.bytes.count) bytes" }
        var keybag: KeybagIdentity { KeybagIdentity(generation: generation, tag: tag.bytes.reduce(0) { $0 << 8 | UInt64($1) }) }
    }

    static let vectors = Result { try TestVectors.load("holder-v2.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    private static func cipher(_ slot: KeyHolderSlot) throws -> HolderPayloadCipher {
        let vectors = try vectors.get()
        let storeID = try vectors.storeID.identifier()
        guard slot == .device else { return try HolderPayloadCipher(deviceSecret: vectors.deviceSecret.secret(), storeID: storeID) }
        return try HolderPayloadCipher(sealedDeviceSecret: SealedObject(encoded: vectors.sealedDeviceSecret.bytes), storeID: storeID)
    }

    @Test("The vectors include every slot")
    func vectorsAreRead() throws {
        #expect(Set(try Self.vectors.get().cases.map(\.slot)) == Set(KeyHolderSlot.allCases.map(\.rawValue)))
    }

    @Test("Payloads of another implementation open, and sealing with the same nonce gives the same bytes", arguments: cases)
    func vector(_ vector: Case) throws {
        let slot = try #require(KeyHolderSlot(rawValue: vector.slot))
        let cipher = try Self.cipher(slot)
        let payload = vector.payload.bytes
        #expect(try cipher.openedBytes(payload, in: slot, of: vector.keybag, at: vector.lockEpoch) == vector.secret.bytes)
        let sealed = try cipher.sealedBytes(
            vector.secret.bytes, in: slot, of: vector.keybag, at: vector.lockEpoch, nonce: payload[1..<13])
        #expect(sealed == payload)
    }

    @Test(
        "With any byte altered, in another slot, or of another keybag, lock epoch, store, or device secret, nothing opens", arguments: cases
    )
    func bound(_ vector: Case) throws {
        let slot = try #require(KeyHolderSlot(rawValue: vector.slot))
        let cipher = try Self.cipher(slot)
        let good = vector.payload.bytes
        for index in good.indices {
            var altered = good
            altered[index] ^= 1
            #expect(try cipher.openedBytes(altered, in: slot, of: vector.keybag, at: vector.lockEpoch) == nil, "byte \(index)")
        }
        for count in 1..<good.count {
            let cut = Array(good.prefix(count))
            #expect(try cipher.openedBytes(cut, in: slot, of: vector.keybag, at: vector.lockEpoch) == nil, "\(count) bytes")
        }
        for other in KeyHolderSlot.allCases where other != slot {
            #expect(try cipher.openedBytes(good, in: other, of: vector.keybag, at: vector.lockEpoch) == nil)
        }
        let (generation, tag) = (vector.keybag.generation, vector.keybag.tag)
        for keybag in [
            KeybagIdentity(generation: generation &+ 1, tag: tag), KeybagIdentity(generation: generation, tag: tag ^ 1),
            KeybagIdentity(generation: generation, tag: tag.byteSwapped &+ 1),
        ] {
            #expect(try cipher.openedBytes(good, in: slot, of: keybag, at: vector.lockEpoch) == nil)
        }
        for epoch in [vector.epoch + 1, vector.epoch - 1, vector.epoch + 1 << 32] {
            #expect(try cipher.openedBytes(good, in: slot, of: vector.keybag, at: LockEpoch(rawValue: epoch)) == nil)
        }
        let vectors = try Self.vectors.get()
        let ofOtherStore = try HolderPayloadCipher(deviceSecret: vectors.deviceSecret.secret(), storeID: .random())
        #expect(try ofOtherStore.openedBytes(good, in: slot, of: vector.keybag, at: vector.lockEpoch) == nil)
        let ofOtherDevice = try HolderPayloadCipher(
            deviceSecret: SecretBytes(randomByteCount: DeviceSecret.byteCount), storeID: vectors.storeID.identifier())
        #expect(try ofOtherDevice.openedBytes(good, in: slot, of: vector.keybag, at: vector.lockEpoch) == nil)
    }

    @Test("Sealing twice gives different bytes, and neither contains the secret")
    func nonces() throws {
        let cipher = try Self.cipher(.unlocked)
        let secret = (0..<111).map { _ in UInt8.random(in: 0...255) }
        let keybag = KeybagIdentity(generation: 3, tag: 4)
        let payloads = try (0..<2).map { _ in try cipher.sealedBytes(secret, in: .unlocked, of: keybag) }
        #expect(Set(payloads.map { $0[1..<13] }).count == 2 && Set(payloads.map { $0[13...] }).count == 2)
        for payload in payloads {
            #expect(payload.firstRange(of: secret[..<16]) == nil)
            #expect(try cipher.openedBytes(payload, in: .unlocked, of: keybag) == secret)
        }
    }
}
