// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("The text of a recovery key")
struct RecoveryKeyTests {
    private static func bits(_ bytes: [UInt8]) throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    private static func text(_ key: RecoveryKey) throws -> String { String(decoding: try key.text().copiedBytes(), as: UTF8.self) }

    private static func key(_ text: String) throws(KeychainFailure) -> RecoveryKey {
        let bytes = Array(text.utf8)
        // The bytes are read within the closure.
        return try unsafe bytes.span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    @Test("The text consists of nine groups of four characters without look-alikes")
    func form() throws {
        let text = try Self.text(RecoveryKey())
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        #expect(text.utf8.count == RecoveryKey.textByteCount && groups.count == 9 && groups.allSatisfy { $0.count == 4 })
        #expect(text.allSatisfy { "0123456789ABCDEFGHJKMNPQRSTVWXYZ-".contains($0) })
    }

    @Test("Known bits have a known text")
    func knownText() throws {
        let zeros = try Self.text(RecoveryKey(bits: Self.bits(Array(repeating: 0, count: 20))))
        #expect(zeros.hasPrefix("0000-0000-0000-0000-0000-0000-0000-0000-"))
        let ones = try Self.text(RecoveryKey(bits: Self.bits(Array(repeating: 0xFF, count: 20))))
        #expect(ones.hasPrefix("ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-"))
        let counting = try Self.text(RecoveryKey(bits: Self.bits(Array(0..<20))))
        // 00000 00000 00000 10000 00100 00001 10000 01000 …
        #expect(counting.hasPrefix("000G-40R4-0M30-E209-185G-R38E-1W8"), "\(counting)")
    }

    @Test("Case, blanks, and dashes do not matter")
    func readAgain() throws {
        for _ in 0..<50 {
            let key = try RecoveryKey()
            let text = try Self.text(key)
            let folded = text.lowercased().replacing("0", with: "o").replacing("1", with: "l")
            for typed in [text, text.replacing("-", with: ""), text.replacing("-", with: " \t- "), folded, text.replacing("1", with: "I")] {
                #expect(try Self.key(typed).bits.copiedBytes() == key.bits.copiedBytes())
            }
        }
    }

    @Test("One mistyped character is nearly always detected, and never gives the same key")
    func mistyped() throws {
        let key = try RecoveryKey()
        let letters = Array(try Self.text(key))
        var acceptedCount = 0
        for index in letters.indices where letters[index] != "-" {
            for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != letters[index] {
                var typed = letters
                typed[index] = other
                do throws(KeychainFailure) {
                    let accepted = try Self.key(String(typed))
                    #expect(accepted.bits.copiedBytes() != key.bits.copiedBytes())
                    acceptedCount += 1
                } catch {
                    #expect(error.status == .parameter && error.cause == .mistyped)
                }
            }
        }
        // The checksum accepts one of a million by chance, so ten of a thousand would be a bug.
        #expect(acceptedCount < 10)
    }

    @Test(
        "Other text is refused, and the reason contains nothing of it",
        arguments: ["", "-", "0000", "U000-0000", "ä000", String(repeating: "Z", count: 37), String(repeating: "Z", count: 400)])
    func refused(_ text: String) {
        let failure = #expect(throws: KeychainFailure.self) { try Self.key(text) }
        #expect(failure?.status == .parameter && (text.count < 4 || failure?.reason.contains(text) == false))
    }
}

@Suite("Opening a keybag with its recovery key")
struct RecoveryTests {
    private static func secret(_ document: KeybagDocument, _ key: RecoveryKey) throws -> [UInt8] {
        try OpenKeybag.recovering([document.encoded], with: key, storeID: document.storeID).deviceSecret.secret.copiedBytes()
    }

    @Test("The recovery key opens the device secret, and no other key does")
    func deviceSecret() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let change = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        #expect(try store.opening(change.document).hasRecoveryKey && !store.original.hasRecoveryKey)
        #expect(try Self.secret(change.document, key) == store.deviceSecret.copiedBytes())
        let failure = #expect(throws: KeychainFailure.self) { _ = try Self.secret(change.document, RecoveryKey()) }
        #expect(failure?.status == .authFailed)
        #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try Self.secret(store.original.document, key) }
    }

    @Test("The same recovery key opens nothing in another store")
    func otherStore() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let change = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try OpenKeybag.recovering([change.document.encoded], with: key, storeID: .random())
        }
    }

    @Test("With one damaged copy the other one is used")
    func damagedCopy() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        let good = try store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret).document.encoded
        for damaged in [[], Array(good.prefix(100)), good.map { $0 ^ 1 }, good.enumerated().map { $0 == 4 ? 9 : $1 }] {
            let found = try OpenKeybag.recovering([damaged, good], with: key, storeID: store.storeID).deviceSecret.secret.copiedBytes()
            #expect(found == store.deviceSecret.copiedBytes())
        }
    }

    @Test("Creating a recovery key requires the passcode if one is set")
    func takesPasscode() throws {
        let store = try PasscodeStore()
        let key = try RecoveryKey()
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try store.keybag.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret)
        }
        let change = try store.keybag.settingRecoveryKey(key, keys: store.unlockedKeys(), deviceSecret: store.deviceSecret)
        #expect(try Self.secret(change.document, key) == store.deviceSecret.copiedBytes())
        #expect(change.document.content.recovery?.sealedPasscodeSecret == nil)
    }

    @Test("A new recovery key replaces the old one")
    func replaced() throws {
        let store = try PasscodeStore()
        let (first, second) = (try RecoveryKey(), try RecoveryKey())
        let once = try store.opening(store.original.settingRecoveryKey(first, keys: nil, deviceSecret: store.deviceSecret).document)
        let twice = try once.settingRecoveryKey(second, keys: nil, deviceSecret: store.deviceSecret).document
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try Self.secret(twice, first) }
        #expect(try Self.secret(twice, second) == store.deviceSecret.copiedBytes())
    }

    @Test("The recovery key replaces a lost TPM; the passcode is still required")
    func lostChip() throws {
        let store = try ChipStore()
        let key = try RecoveryKey()
        let change = try store.keybag.settingRecoveryKey(key, keys: store.unlockedKeys(), deviceSecret: store.deviceSecret.secret)
        let expected = try store.unlockedKeys().copiedKeys(of: store.keybag.document)
        store.chip.clear()
        let keybag = try store.opening(change.document)
        #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try store.unlockedKeys(of: keybag) }
        func keys(_ passcode: String, _ key: RecoveryKey) throws -> UnlockedKeys {
            try keybag.unlockedKeys(passcode: PasscodeStore.code(passcode), deviceSecret: store.deviceSecret.secret, recoveryKey: key)
        }
        #expect(try keys(PasscodeStore.passcode, key).copiedKeys(of: keybag.document) == expected)
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keys("wrong", key) }
        #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keys(PasscodeStore.passcode, RecoveryKey()) }
    }

    @Test("The recovery key stays valid after changes of the passcode and of the protector")
    func keptAfterChanges() throws {
        let store = try ChipStore()
        let key = try RecoveryKey()
        var keybag = try store.opening(
            store.original.settingRecoveryKey(key, keys: nil, deviceSecret: store.deviceSecret.secret).document)
        keybag = try store.opening(
            keybag.settingPasscode(
                PasscodeStore.code("first"), cost: PasscodeStore.cost, deviceSecret: store.deviceSecret.secret, device: store.chip
            ).document)
        keybag = try store.opening(
            keybag.changingPasscode(
                of: store.unlockedKeys("first", of: keybag), to: PasscodeStore.code("second"), cost: PasscodeStore.cost,
                rotatingKeys: true, deviceSecret: store.deviceSecret.secret, device: store.chip
            ).document)
        let keys = try keybag.unlockedKeys(
            passcode: PasscodeStore.code("second"), deviceSecret: store.deviceSecret.secret, recoveryKey: key)
        let new = SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
        let moved = try keybag.movingProtector(
            to: .init(kind: .keyFile), newDeviceSecret: new.secret, deviceSecret: store.deviceSecret.secret, keys: keys,
            passcode: PasscodeStore.code("second"))
        #expect(try Self.secret(moved.document, key) == new.secret.copiedBytes())
        let removed = try store.opening(moved.document, new).removingPasscode(of: #require(moved.keys), deviceSecret: new.secret)
        #expect(try Self.secret(removed.document, key) == new.secret.copiedBytes())
    }
}

@Suite("Test vectors of recovery keys")
struct RecoveryVectorTests {
    struct Vectors: Decodable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let recoveryKey: String
        let otherRecoveryKey: String
        let cases: [Case]
        let forgeries: [Forgery]
    }

    /// An authentic keybag of another device secret, sealed to the recovery key of the store.
    struct Forgery: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let keybag: Hexadecimal

        var testDescription: String { name }
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct ClassKeyVector: Decodable {
            let accessibility: UInt8
            let generation: UInt32
            let key: Hexadecimal
        }

        let name: String
        let keybag: Hexadecimal
        let passcode: String?
        let classKeys: [ClassKeyVector]

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("recovery-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []
    static let forgeries = (try? vectors.get().forgeries) ?? []

    private func key(_ text: String) throws -> RecoveryKey {
        // The bytes are read within the closure.
        try unsafe Array(text.utf8).span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    @Test("The vectors are not empty")
    func vectorsAreRead() throws {
        #expect(try Self.vectors.get().cases.count == 4 && Self.vectors.get().forgeries.count == 4)
    }

    @Test("The recovery key opens the device secret and the TPM's part of the passcode key", arguments: cases)
    func recovers(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let recoveryKey = try key(vectors.recoveryKey)
        let recovered = try OpenKeybag.recovering([vector.keybag.bytes], with: recoveryKey, storeID: storeID)
        #expect(recovered.deviceSecret.secret.copiedBytes() == vectors.deviceSecret.bytes)
        let keybag = recovered.keybag
        var provider: any KeyProvider = keybag
        if let passcode = vector.passcode {
            provider = try keybag.unlockedKeys(
                passcode: PasscodeStore.code(passcode), deviceSecret: recovered.deviceSecret.secret, recoveryKey: recoveryKey)
            #expect(throws: KeychainFailure(.authFailed, "")) {
                try keybag.unlockedKeys(
                    passcode: PasscodeStore.code(passcode + "0"), deviceSecret: recovered.deviceSecret.secret, recoveryKey: recoveryKey)
            }
        }
        for key in vector.classKeys {
            let accessibility = try #require(ItemAccessibility(code: key.accessibility))
            let lent = try provider.withClassKey(for: accessibility, generation: key.generation) {
                (key: borrowing ClassKey) throws(KeychainFailure) in key.copiedBytes()
            }
            #expect(lent == key.key.bytes)
        }
    }

    @Test("Another recovery key fails as wrong", arguments: cases)
    func otherKey(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let other = try key(vectors.otherRecoveryKey)
        let storeID = try vectors.storeID.identifier()
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try OpenKeybag.recovering([vector.keybag.bytes], with: other, storeID: storeID)
        }
    }

    @Test("A keybag with other store keys, or without the right authentication code, is damaged", arguments: forgeries)
    func forged(_ vector: Forgery) throws {
        let vectors = try Self.vectors.get()
        let recoveryKey = try key(vectors.recoveryKey)
        let storeID = try vectors.storeID.identifier()
        let failure = #expect(throws: KeychainFailure.self) {
            _ = try OpenKeybag.recovering([vector.keybag.bytes], with: recoveryKey, storeID: storeID)
        }
        #expect(failure?.isDamage == true)
        // The other copy is found behind a forged one.
        let good = try #require(vectors.cases.first).keybag.bytes
        let recovered = try OpenKeybag.recovering([vector.keybag.bytes, good], with: recoveryKey, storeID: storeID)
        #expect(recovered.keybag.document.encoded == good)
    }
}
