// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

@Suite("Index digest test vectors")
struct IndexDigestVectorTests {
    struct Vectors: Decodable {
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let purpose: String
        let itemClass: UInt8
        let values: [ValueVector]
        let digest: Hexadecimal

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("index-digests-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors are read, of both purposes")
    func vectorsAreRead() throws {
        #expect(Set(try Self.vectors.get().cases.map(\.purpose)) == ["one value", "several values"])
    }

    @Test("A digest is the documented one", arguments: cases)
    func digest(_ vector: Case) throws {
        let cipher = try TestVectors.load("index-digests-v1.json", as: StoreVector.self).open().cipher
        let itemClass = try #require(ItemClass(code: vector.itemClass))
        let values = try vector.values.map { try $0.parsed() }
        let digest: IndexDigest
        if vector.purpose == "one value" {
            let (attribute, value) = try #require(values.first)
            digest = try cipher.digest(of: value, for: attribute, in: itemClass)
        } else {
            digest = try cipher.digest(of: values, in: itemClass)
        }
        #expect(try digest == vector.digest.identifier())
    }
}
