// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("A keybag's passcode")
struct PasscodeTests {
    private static let protected: [ItemAccessibility] = [
        .whenUnlocked, .whenUnlockedThisDeviceOnly, .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly, .whenPasscodeSetThisDeviceOnly,
    ]

    @Test("Setting a passcode adds a generation of each protected class, which new writes use")
    func setting() throws {
        let store = try PasscodeStore()
        #expect(store.keybag.isPasscodeSet && !store.original.isPasscodeSet)
        #expect(store.keybag.keybagGeneration == store.original.keybagGeneration + 1)
        #expect(store.original.currentPasscodeGeneration == 1 && !store.original.holdsOlderGenerations)
        #expect(store.keybag.currentPasscodeGeneration == 2 && store.keybag.holdsOlderGenerations)
        for accessibility in Self.protected { #expect(try store.keybag.currentGeneration(for: accessibility) == 2) }
        #expect(try store.keybag.currentGeneration(for: .always) == 1)
        #expect(store.keybag.passcodeCost == PasscodeStore.cost && store.original.passcodeCost == nil)
    }

    @Test("The correct passcode unlocks all keys, including unchanged older ones")
    func unlocking() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let found = try keys.copiedKeys(of: store.keybag.document)
        let before = try store.original.copiedKeys(of: store.original.document)
        #expect(found.count == 11 && Set(found.values).count == 11)
        #expect(before.count == 6 && before.allSatisfy { found[$0.key] == $0.value })
        let made = try #require(store.change.keys)
        #expect(try made.copiedKeys(of: store.change.document) == found)
        #expect(KeyProviderContract.violations(of: keys, isPasscodeSet: true) == [])
        #expect(KeyProviderContract.violations(of: made, isPasscodeSet: true) == [])
    }

    @Test("A wrong passcode is errSecAuthFailed", arguments: ["1234", "123456", "12345 ", "\012345", "Skroob"])
    func wrongPasscode(_ text: String) throws {
        let store = try PasscodeStore()
        let failure = #expect(throws: KeychainFailure.self) { try store.unlockedKeys(text) }
        #expect(failure?.status == .authFailed && failure?.refusal == .wrongPasscode)
    }

    @Test("The correct passcode is useless with another device secret")
    func otherDevice() throws {
        let store = try PasscodeStore()
        let other = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.unlockedKeys(passcode: PasscodeStore.code(PasscodeStore.passcode), deviceSecret: other)
        }
        #expect(failure?.status == .notAvailable)
    }

    @Test("The same passcode gives a different key in each keybag, because the salt is random")
    func salts() throws {
        let one = try PasscodeStore()
        let changed = try one.keybag.changingPasscode(
            of: one.unlockedKeys(), to: PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost, rotatingKeys: false,
            deviceSecret: one.deviceSecret)
        let before = try #require(one.keybag.document.content.passcode)
        let after = try #require(changed.document.content.passcode)
        #expect(before.salt != after.salt && before.cost == after.cost)
        let wrapped = Set(one.keybag.document.classKeys.filter { $0.wrapping == .passcodeKey }.map(\.wrappedKey))
        #expect(wrapped.count == 9 && wrapped.isDisjoint(with: changed.document.classKeys.map(\.wrappedKey)))
    }

    @Test("A passcode cannot be set if one is set already")
    func settingTwice() throws {
        let store = try PasscodeStore()
        let failure = #expect(throws: KeychainFailure.self) {
            try store.keybag.settingPasscode(
                PasscodeStore.code("other"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret)
        }
        #expect(failure?.status == .duplicateItem)
    }

    @Test("Without a passcode, unlocking, changing, and removing it fail")
    func nothingSet() throws {
        let store = try PasscodeStore()
        let keys = try store.unlockedKeys()
        let code = try PasscodeStore.code(PasscodeStore.passcode)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.unlockedKeys(passcode: code, deviceSecret: store.deviceSecret)
        }
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.changingPasscode(
                of: keys, to: code, cost: PasscodeStore.cost, rotatingKeys: false, deviceSecret: store.deviceSecret)
        }
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try store.original.removingPasscode(of: keys, deviceSecret: store.deviceSecret)
        }
    }
}

@Suite("The cost of a passcode")
struct PasscodeCostTests {
    struct Parameters: CustomTestStringConvertible {
        let roundsExponent: UInt8
        let blockSize: UInt32
        let parallelism: UInt32

        init(_ roundsExponent: UInt8, _ blockSize: UInt32, _ parallelism: UInt32) {
            self.roundsExponent = roundsExponent
            self.blockSize = blockSize
            self.parallelism = parallelism
        }

        var testDescription: String { "N = 2^\(roundsExponent), r = \(blockSize), p = \(parallelism)" }

        var cost: PasscodeCost? {
            PasscodeCost(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism)
        }
    }

    static let allowed = [
        Parameters(10, 1, 1), Parameters(10, 8, 16), Parameters(15, 1, 1), Parameters(16, 8, 1), Parameters(16, 16, 1),
        Parameters(20, 8, 1), Parameters(20, 8, 4), Parameters(22, 2, 1), Parameters(19, 16, 4),
    ]

    static let refused = [
        Parameters(0, 8, 1), Parameters(9, 8, 1), Parameters(16, 0, 1), Parameters(16, 8, 0), Parameters(16, 17, 1),
        Parameters(16, 8, 17), Parameters(16, 1, 1), Parameters(21, 8, 1), Parameters(20, 9, 1), Parameters(20, 8, 5),
        Parameters(31, 2, 1), Parameters(63, 8, 1), Parameters(255, 8, 1), Parameters(16, .max, .max), Parameters(30, 16, 16),
    ]

    @Test("A cost within the bounds is accepted", arguments: allowed)
    func allowedCost(_ parameters: Parameters) throws {
        #expect(try #require(parameters.cost).memoryByteCount <= 1 << 30)
    }

    @Test("A cost outside the bounds is refused", arguments: refused)
    func refusedCost(_ parameters: Parameters) {
        #expect(parameters.cost == nil)
    }

    @Test("The standard cost is within the bounds and needs 64 MiB")
    func standard() {
        #expect(PasscodeCost(roundsExponent: 16, blockSize: 8, parallelism: 1) == .standard)
        #expect(PasscodeCost.standard.memoryByteCount == 64 << 20)
    }
}

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
                let accessibility = try #require(ItemAccessibility(code: key.accessibility))
                keys[ClassKeyID(accessibility, generation: key.generation)] = key.key.bytes
            }
            return keys
        }

        func payload(_ slot: KeyHolderSlot) throws -> [UInt8] { try #require(payloads[slot.rawValue]).bytes }
    }

    static let vectors = Result { try TestVectors.load("passcode-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors include the standard cost")
    func vectorsAreRead() throws {
        #expect(try Self.vectors.get().cases.contains { $0.cost.roundsExponent == PasscodeCost.standard.roundsExponent })
    }

    private func open(_ vector: Case, holder: SampleHolder? = nil) throws -> OpenKeybag {
        let vectors = try Self.vectors.get()
        return try OpenKeybag(
            copies: [vector.keybag.bytes, vector.keybag.bytes], storeID: vectors.storeID.identifier(),
            deviceSecret: vectors.deviceSecret.secret(), holder: holder)
    }

    @Test("The passcode unlocks the keybag's class keys, which form the same payloads", arguments: cases)
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
            let expected = try vector.payload(slot)
            let (cipher, identity) = (keybag.payloadCipher, keybag.identity)
            let opened = try #require(try cipher.openedBytes(keys.payload(for: slot, at: .unused).copiedBytes(), in: slot, of: identity))
            #expect(try cipher.sealedBytes(opened, in: slot, of: identity, nonce: expected[1..<13]) == expected)
        }
    }

    @Test("Another passcode unlocks nothing", arguments: cases.filter { $0.cost.roundsExponent < 16 })
    func wrongPasscode(_ vector: Case) throws {
        let keybag = try open(vector)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            try keybag.unlockedKeys(
                passcode: Passcode(normalized: vector.wrongPasscode.secret()), deviceSecret: Self.vectors.get().deviceSecret.secret())
        }
    }

    @Test(
        "Rewrapping under the same passcode gives the same bytes", arguments: cases.filter { $0.cost.roundsExponent < 16 }
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
            let accessibility = try #require(ItemAccessibility(code: key.accessibility))
            let box = try SharedClassKey(ClassKey(accessibility: accessibility, generation: key.generation, secret: key.key.secret()))
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

    @Test("A holder's payload yields the keys without the passcode", arguments: cases)
    func payloads(_ vector: Case) throws {
        let holder = SampleHolder()
        for slot in KeyHolderSlot.ofClassKeys { holder.put(try vector.payload(slot), in: slot) }
        let keybag = try open(vector, holder: holder)
        #expect(try keybag.lockState(at: PasscodeStore.lockEpoch) == .unlocked)
        #expect(try keybag.copiedKeys(of: keybag.document) == vector.keys())
    }
}
