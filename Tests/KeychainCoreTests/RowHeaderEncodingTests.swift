// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@Suite("The encoding of a row's header")
struct RowHeaderEncodingTests {
    struct Vectors: Decodable {
        struct Packed: Decodable, Sendable, CustomTestStringConvertible {
            let name: String
            let expect: String
            let bytes: Hexadecimal

            var testDescription: String { name }
        }

        let cases: [Case]
        let packedDigests: [Packed]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let storeID: Hexadecimal
        let header: Header
        let encoded: Hexadecimal

        var testDescription: String { name }
    }

    struct Header: Decodable, Sendable {
        let formatVersion: UInt8
        let itemClass: UInt8
        let itemID: Hexadecimal
        let accessibility: UInt8
        let classKeyGeneration: UInt32
        let revision: Hexadecimal
        let isSynchronizable: Bool
        let isTombstone: Bool
        let serviceDigest: Hexadecimal
        let accountDigest: Hexadecimal
        let remainingKeyDigest: Hexadecimal
        let accessGroupDigest: Hexadecimal
        let attributeDigests: Hexadecimal
        let constraints: Hexadecimal?

        func parsed() throws -> RowHeader {
            RowHeader(
                formatVersion: formatVersion,
                reference: PersistentReference(itemClass: try #require(ItemClass(code: itemClass)), id: try itemID.identifier()),
                accessibility: try #require(Accessibility(code: accessibility)), classKeyGeneration: classKeyGeneration,
                revision: try revision.identifier(), isSynchronizable: isSynchronizable, isTombstone: isTombstone,
                serviceDigest: try serviceDigest.identifier(), accountDigest: try accountDigest.identifier(),
                remainingKeyDigest: try remainingKeyDigest.identifier(), accessGroupDigest: try accessGroupDigest.identifier(),
                attributeDigests: try #require(RowHeader.unpacked(attributeDigests.bytes)), constraints: constraints?.bytes
            )
        }
    }

    static let vectors = Result { try TestVectors.load("row-header-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []
    static let packedDigests = (try? vectors.get().packedDigests) ?? []

    @Test("The vectors are read")
    func vectorsAreRead() throws {
        let vectors = try Self.vectors.get()
        #expect(!vectors.cases.isEmpty && Set(vectors.packedDigests.map(\.expect)) == ["parses", "refused"])
    }

    @Test("A header has the documented encoding", arguments: cases)
    func encoding(_ vector: Case) throws {
        let header = try vector.header.parsed()
        #expect(try header.encoded(storeID: vector.storeID.identifier()) == vector.encoded.bytes)
        #expect(header.encodedByteCount == vector.encoded.bytes.count)
    }

    @Test("No two headers of the vectors share an encoding")
    func encodingIsUnique() throws {
        let encodings = try Self.vectors.get().cases.map(\.encoded.bytes)
        #expect(Set(encodings).count == encodings.count)
    }

    @Test("Packed digests come back, and only in their one order", arguments: packedDigests)
    func packing(_ vector: Vectors.Packed) {
        let digests = RowHeader.unpacked(vector.bytes.bytes)
        #expect((digests == nil) == (vector.expect == "refused"))
        if let digests { #expect(RowHeader.packed(digests) == vector.bytes.bytes) }
    }
}
