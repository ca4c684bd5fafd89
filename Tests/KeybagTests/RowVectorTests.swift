// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import KeychainCore
import KeychainTesting
import Testing

@testable import Keybag

@Suite("Row test vectors")
struct RowVectorTests {
    struct Vectors: Decodable {
        struct Padding: Decodable {
            let content: Int
            let padded: Int
        }

        let cases: [Case]
        let paddedByteCounts: [Padding]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let expect: String
        let isIntact: Bool?
        /// False: only the tag is wrong, so that sealing anew gives another row.
        let isResealable: Bool?
        let firstDamagedPart: String?
        let row: RowVector
        let itemKey: Hexadecimal?
        let attributes: Hexadecimal?
        let secret: Hexadecimal?

        var testDescription: String { name }
    }

    struct RowVector: Decodable, Sendable {
        let header: HeaderVector
        let wrappedItemKey: Hexadecimal
        let sealedAttributes: Hexadecimal
        let sealedSecret: Hexadecimal
        let tag: Hexadecimal

        func parsed() throws -> SealedRow {
            SealedRow(
                header: try header.parsed(), wrappedItemKey: wrappedItemKey.bytes, sealedAttributes: sealedAttributes.bytes,
                sealedSecret: sealedSecret.bytes, tag: tag.bytes
            )
        }
    }

    struct HeaderVector: Decodable, Sendable {
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

    static let vectors = Result { try TestVectors.load("row-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    private let keybag: OpenKeybag

    init() throws {
        keybag = try TestVectors.load("row-v1.json", as: StoreVector.self).open()
    }

    private func open(_ row: SealedRow, includingSecret: Bool = true) throws(KeychainFailure) -> OpenedRow {
        let cipher = keybag.cipher
        return try keybag.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try cipher.open(row, includingSecret: includingSecret, under: key)
        }
    }

    @Test("The vectors are read, valid and refused ones")
    func vectorsAreRead() throws {
        let cases = try Self.vectors.get().cases
        #expect(cases.contains { $0.expect == "opens" } && cases.contains { $0.expect == "decode" })
    }

    @Test("A valid row opens to what was sealed", arguments: cases.filter { $0.expect == "opens" })
    func validRow(_ vector: Case) throws {
        let opened = try open(vector.row.parsed())
        let encoded = try #require(vector.attributes)
        #expect(opened.attributes == ItemAttributes(encoded: encoded.bytes))
        #expect(opened.secret == vector.secret.map { Data($0.bytes) })
    }

    @Test(
        "Sealing with the same item key gives the same bytes",
        arguments: cases.filter { $0.expect == "opens" && $0.isResealable != false }
    )
    func resealedRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let encoded = try #require(vector.attributes)
        let attributes = try #require(ItemAttributes(encoded: encoded.bytes))
        let itemKey = SymmetricKey(data: try #require(vector.itemKey).bytes)
        let sealed = try keybag.withClassKey(for: row.header.accessibility, generation: row.header.classKeyGeneration) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            try keybag.cipher.seal(
                attributes, secret: vector.secret.map { Data($0.bytes) }, header: row.header, under: key, itemKey: itemKey
            )
        }
        #expect(sealed == row)
    }

    @Test("Any other row is refused as damaged or newer", arguments: cases.filter { $0.expect != "opens" })
    func refusedRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        let failure = #expect(throws: KeychainFailure.self) { try open(row) }
        #expect(failure?.status == .decode)
        #expect(failure?.reason.contains("newer version") == (vector.expect == "newer"), "\(failure?.reason ?? "")")
        if vector.firstDamagedPart == "secret" {
            let opened = try open(row, includingSecret: false)
            #expect(!opened.attributes.isEmpty && opened.secret == nil)
        }
    }

    @Test("The row tag tells, without a class key, whether a row is as it was written", arguments: cases)
    func intactRow(_ vector: Case) throws {
        let row = try vector.row.parsed()
        if let isIntact = vector.isIntact {
            #expect(try keybag.cipher.isIntact(row) == isIntact)
        } else {
            #expect(throws: KeychainFailure(.decode, "")) { try keybag.cipher.isIntact(row) }
        }
    }

    @Test("Lengths are padded as documented")
    func paddedLengths() throws {
        for padding in try Self.vectors.get().paddedByteCounts {
            #expect(PartPadding.paddedByteCount(contentByteCount: padding.content) == padding.padded, "\(padding.content) bytes")
        }
    }
}
