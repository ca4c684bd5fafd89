// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

@Suite("Test vectors of recovery keys")
struct RecoveryVectorTests {
    struct Vectors: Decodable {
        let storeID: Hexadecimal
        let deviceSecret: Hexadecimal
        let recoveryKey: String
        let otherRecoveryKey: String
        let cases: [Case]
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

    private func key(_ text: String) throws -> RecoveryKey {
        // The bytes are read within the closure.
        try unsafe Array(text.utf8).span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    @Test("The vectors are read")
    func vectorsAreRead() throws {
        #expect(try Self.vectors.get().cases.count == 4)
    }

    @Test("The recovery key gives the device secret, and the TPM's part of the passcode key with it", arguments: cases)
    func recovers(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let recoveryKey = try key(vectors.recoveryKey)
        let secret = try KeybagDocument.deviceSecret(in: [vector.keybag.bytes], openedBy: recoveryKey, storeID: storeID)
        // The bytes are copied within the closure.
        #expect(unsafe secret.withBytes { unsafe Array($0) } == vectors.deviceSecret.bytes)
        let keybag = try OpenKeybag(copies: [vector.keybag.bytes], storeID: storeID, deviceSecret: secret)
        var provider: any KeyProvider = keybag
        if let passcode = vector.passcode {
            provider = try keybag.unlockedKeys(
                passcode: PasscodeStore.code(passcode), deviceSecret: secret, recoveryKey: recoveryKey)
            #expect(throws: KeychainFailure(.authFailed, "")) {
                try keybag.unlockedKeys(passcode: PasscodeStore.code(passcode + "0"), deviceSecret: secret, recoveryKey: recoveryKey)
            }
        }
        for key in vector.classKeys {
            let accessibility = try #require(Accessibility(code: key.accessibility))
            let lent = try provider.withClassKey(for: accessibility, generation: key.generation) {
                (key: borrowing ClassKey) throws(KeychainFailure) in key.copiedBytes()
            }
            #expect(lent == key.key.bytes)
        }
    }

    @Test("Another recovery key gives nothing, and says so", arguments: cases)
    func otherKey(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let other = try key(vectors.otherRecoveryKey)
        let storeID = try vectors.storeID.identifier()
        #expect(throws: KeychainFailure(.authFailed, "")) {
            _ = try KeybagDocument.deviceSecret(in: [vector.keybag.bytes], openedBy: other, storeID: storeID)
        }
    }
}
