// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

@Suite("Keybag test vectors")
struct KeybagVectorTests {
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

        let name: String
        let copies: [Hexadecimal]
        let expect: String
        let reason: String?
        let damagedCopyCount: Int?
        let generation: UInt64?
        let protectorKind: UInt8?
        let protectorParameters: Hexadecimal?
        let classKeys: [Key]?

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("keybag-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors are read, valid and refused ones")
    func vectorsAreRead() throws {
        let cases = try Self.vectors.get().cases
        #expect(cases.contains { $0.expect == "opens" } && cases.contains { $0.expect == "notAvailable" })
    }

    private func open(_ vector: Case) throws -> Result<OpenKeybag, KeychainFailure> {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let secret = try vectors.deviceSecret.secret()
        do throws(KeychainFailure) {
            return .success(try OpenKeybag(copies: vector.copies.map(\.bytes), storeID: storeID, deviceSecret: secret))
        } catch {
            return .failure(error)
        }
    }

    @Test("A valid keybag opens with the keys it was made of", arguments: cases.filter { $0.expect == "opens" })
    func validKeybag(_ vector: Case) throws {
        let keybag = try open(vector).get()
        #expect(keybag.damagedCopyCount == vector.damagedCopyCount)
        #expect(keybag.keybagGeneration == vector.generation)
        #expect(keybag.document.protector.kind.rawValue == vector.protectorKind)
        #expect(keybag.document.protector.parameters == vector.protectorParameters?.bytes)
        let keys = try #require(vector.classKeys)
        for key in keys {
            let accessibility = try #require(Accessibility(code: key.accessibility))
            let lent = try keybag.withClassKey(for: accessibility, generation: key.generation) {
                (key: borrowing ClassKey) throws(KeychainFailure) in key.copiedBytes()
            }
            #expect(lent == key.key.bytes)
            let newest = keys.filter { $0.accessibility == key.accessibility }.map(\.generation).max()
            #expect(try keybag.currentGeneration(for: accessibility) == newest)
        }
    }

    @Test("Any other keybag is 'not available', with the right reason", arguments: cases.filter { $0.expect == "notAvailable" })
    func refusedKeybag(_ vector: Case) throws {
        guard case .failure(let failure) = try open(vector) else {
            Issue.record("it opened")
            return
        }
        #expect(failure.status == .notAvailable)
        let reason = try #require(vector.reason)
        #expect(failure.reason.contains(reason), "\(failure.reason)")
    }

    @Test("Encoding what was parsed gives the same bytes", arguments: cases.filter { $0.expect == "opens" && $0.damagedCopyCount == 0 })
    func reencodedKeybag(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let storeID = try vectors.storeID.identifier()
        let secret = try vectors.deviceSecret.secret()
        let bytes = try #require(vector.copies.first).bytes
        let parsed = try KeybagDocument(authentic: bytes, storeID: storeID)
        let key = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: secret, storeID: storeID))
        #expect(KeybagDocument(storeID: storeID, content: parsed.content, authenticatedBy: key).encoded == bytes)
    }
}
