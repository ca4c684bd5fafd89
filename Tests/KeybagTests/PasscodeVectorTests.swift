// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

@Suite("Passcode test vectors")
struct PasscodeVectorTests {
    struct Vectors: Decodable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct Key: Decodable, Sendable {
            let accessibility: UInt8
            let generation: UInt32
            let key: Hexadecimal
        }

        struct Cost: Decodable, Sendable {
            let roundsExponent: UInt8
            let blockSize: UInt32
            let parallelism: UInt32
        }

        let name: String
        let keybag: Hexadecimal
        let generation: UInt64
        let passcode: Hexadecimal
        let wrongPasscode: Hexadecimal
        let cost: Cost
        let passcodeKey: Hexadecimal
        let classKeys: [Key]
        let payloads: [String: Hexadecimal]

        var testDescription: String { name }

        func keys() throws -> [ClassKeyID: [UInt8]] {
            var keys: [ClassKeyID: [UInt8]] = [:]
            for key in classKeys {
                let accessibility = try #require(Accessibility(code: key.accessibility))
                keys[ClassKeyID(accessibility, generation: key.generation)] = key.key.bytes
            }
            return keys
        }

        func payload(_ slot: KeyHolderSlot) throws -> [UInt8] { try #require(payloads[slot.rawValue]).bytes }
    }

    static let vectors = Result { try TestVectors.load("passcode-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors are read, one of the standard cost among them")
    func vectorsAreRead() throws {
        #expect(try Self.vectors.get().cases.contains { $0.cost.roundsExponent == PasscodeCost.standard.roundsExponent })
    }

    private func open(_ vector: Case, holder: SampleHolder? = nil) throws -> OpenKeybag {
        let vectors = try Self.vectors.get()
        return try OpenKeybag(
            copies: [vector.keybag.bytes, vector.keybag.bytes], storeID: vectors.storeID.identifier(),
            deviceSecret: vectors.deviceSecret.secret(), holder: holder)
    }

    @Test("The passcode opens the class keys that the keybag was made of, and they make the same payloads", arguments: cases)
    func unlocking(_ vector: Case) throws {
        let keybag = try open(vector)
        #expect(keybag.keybagGeneration == vector.generation)
        let cost = try #require(keybag.passcodeCost)
        #expect(cost.roundsExponent == vector.cost.roundsExponent && cost.blockSize == vector.cost.blockSize)
        #expect(cost.parallelism == vector.cost.parallelism)
        let keys = try keybag.unlockedKeys(
            passcode: Passcode(normalized: vector.passcode.secret()), deviceSecret: Self.vectors.get().deviceSecret.secret())
        #expect(try keys.copiedKeys(of: keybag.document) == vector.keys())
        for slot in KeyHolderSlot.ofClassKeys {
            #expect(try keys.payload(for: slot).copiedBytes() == vector.payload(slot))
        }
    }

    @Test("Another passcode opens none", arguments: cases.filter { $0.cost.roundsExponent < 16 })
    func wrongPasscode(_ vector: Case) throws {
        let keybag = try open(vector)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try keybag.unlockedKeys(
                passcode: Passcode(normalized: vector.wrongPasscode.secret()), deviceSecret: Self.vectors.get().deviceSecret.secret())
        }
    }

    @Test(
        "Wrapped anew under the same passcode the keybag is the same, byte by byte", arguments: cases.filter { $0.cost.roundsExponent < 16 }
    )
    func rewrapped(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let deviceSecret = try vectors.deviceSecret.secret()
        let parsed = try open(vector).document
        let record = try #require(parsed.content.passcode)
        let passcodeKey = try PasscodeKey.derive(
            from: Passcode(normalized: vector.passcode.secret()), record, deviceSecret: deviceSecret, storeID: storeID)
        #expect(passcodeKey.copiedBytes() == vector.passcodeKey.bytes)
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        var content = parsed.content
        content.classKeys = []
        for key in vector.classKeys {
            let accessibility = try #require(Accessibility(code: key.accessibility))
            let box = try ClassKeyBox(ClassKey(accessibility: accessibility, generation: key.generation, secret: key.key.secret()))
            let entry =
                accessibility.holderSlot == nil
                ? try box.entry(.deviceKey, under: deviceKey, storeID: storeID)
                : try box.entry(.passcodeKey, under: passcodeKey, storeID: storeID)
            content.classKeys.append(entry)
        }
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        let again = KeybagDocument(storeID: storeID, content: content, authenticatedBy: authenticationKey)
        #expect(again.encoded == vector.keybag.bytes)
    }

    @Test("A holder's payload gives the keys, without the passcode", arguments: cases)
    func payloads(_ vector: Case) throws {
        let holder = SampleHolder()
        for slot in KeyHolderSlot.ofClassKeys { holder.put(try vector.payload(slot), in: slot) }
        let keybag = try open(vector, holder: holder)
        #expect(try keybag.lockState() == .unlocked)
        #expect(try keybag.copiedKeys(of: keybag.document) == vector.keys())
    }
}
