// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@Suite("Byte encoding")
struct CanonicalBytesTests {
    @Test("Numbers are little-endian, bytes are prefixed with their count, and identifiers are plain")
    func writing() {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt8(1))
        bytes.append(littleEndian: UInt16(0x0203))
        bytes.append(littleEndian: UInt32(0x0405_0607))
        bytes.append(littleEndian: UInt64(0x0809_0A0B_0C0D_0E0F))
        bytes.append(lengthPrefixed: [0xAA, 0xBB])
        bytes.append(Identifier128(high: 1, low: 2))
        #expect(
            bytes == [1, 3, 2, 7, 6, 5, 4, 15, 14, 13, 12, 11, 10, 9, 8, 2, 0, 0, 0, 0xAA, 0xBB]
                + [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]
        )
    }

    @Test("Written values are read back")
    func reading() {
        var bytes: [UInt8] = [9]
        bytes.append(littleEndian: UInt16.max)
        bytes.append(littleEndian: UInt32(5))
        bytes.append(littleEndian: UInt64.max)
        bytes.append(lengthPrefixed: [1, 2, 3])
        bytes.append(lengthPrefixed: [])
        var reader = ByteReader(bytes)
        #expect(reader.readByte() == 9 && reader.readUInt16() == .max && reader.readUInt32() == 5 && reader.readUInt64() == .max)
        #expect(reader.readLengthPrefixed() == [1, 2, 3] && reader.readLengthPrefixed() == [])
        #expect(reader.isAtEnd)
        #expect(reader.readByte() == nil && reader.readBytes(1) == nil && reader.readBytes(0) == [])
    }

    @Test("Reading beyond the end returns nil")
    func shortInput() {
        for count in 0..<8 {
            var reader = ByteReader([UInt8](repeating: 0xFF, count: count))
            #expect(reader.readUInt64() == nil)
            #expect((reader.readUInt32() == nil) == (count < 4))
        }
        var reader = ByteReader([0xFF, 0xFF, 0xFF, 0xFF, 1] as [UInt8])
        #expect(reader.readLengthPrefixed() == nil)
        var negative = ByteReader([1] as [UInt8])
        #expect(negative.readBytes(-1) == nil)
    }

    @Test("A slice is read from its start index")
    func slice() {
        let bytes: [UInt8] = [1, 2, 3, 4]
        var reader = ByteReader(bytes[2...])
        #expect(reader.readByte() == 3 && reader.readByte() == 4 && reader.isAtEnd)
    }
}

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
        let header: RowHeaderVector
        let encoded: Hexadecimal

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("row-header-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []
    static let packedDigests = (try? vectors.get().packedDigests) ?? []

    @Test("The vectors are not empty")
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

    @Test("All headers of the vectors have different encodings")
    func encodingIsUnique() throws {
        let encodings = try Self.vectors.get().cases.map(\.encoded.bytes)
        #expect(Set(encodings).count == encodings.count)
    }

    @Test("Packed digests are unpacked, and only in ascending order", arguments: packedDigests)
    func packing(_ vector: Vectors.Packed) {
        let digests = RowHeader.unpacked(vector.bytes.bytes)
        #expect((digests == nil) == (vector.expect == "refused"))
        if let digests { #expect(RowHeader.packed(digests) == vector.bytes.bytes) }
    }
}

@Suite("Identifiers and references")
struct IdentifierTests {
    private let bytes: [UInt8] = [0, 1, 2, 3, 4, 5, 6, 7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]

    @Test("An identifier is sixteen bytes, in order")
    func identifier() throws {
        let identifier = try #require(Identifier128(bytes))
        #expect(identifier.bytes == bytes)
        #expect(identifier.hexadecimal == "0001020304050607f8f9fafbfcfdfeff")
        #expect(identifier == Identifier128(high: 0x0001_0203_0405_0607, low: 0xF8F9_FAFB_FCFD_FEFF))
        // The buffer is read during the call.
        #expect(unsafe bytes.withUnsafeBytes { unsafe Identifier128(buffer: $0) } == identifier)
        #expect(Identifier128.random() != Identifier128.random())
    }

    @Test("Other sizes are refused", arguments: [0, 15, 17, 32])
    func otherLength(_ byteCount: Int) {
        #expect(Identifier128([UInt8](repeating: 0, count: byteCount)) == nil)
        let short = [UInt8](repeating: 0, count: min(byteCount, 15))
        // The buffer is read during the call.
        #expect(unsafe short.withUnsafeBytes { unsafe Identifier128(buffer: $0) } == nil)
    }

    @Test("A persistent reference consists of the class's letters and the item's identifier", arguments: ItemClass.allCases)
    func reference(_ itemClass: ItemClass) throws {
        let reference = PersistentReference(itemClass: itemClass, id: try #require(ItemID(bytes)))
        #expect(reference.data == Data(itemClass.rawValue.utf8) + Data(bytes))
        #expect(reference.data.count == PersistentReference.byteCount)
        #expect(PersistentReference(reference.data) == reference)
        #expect(PersistentReference((Data([0]) + reference.data).dropFirst()) == reference, "a slice is read from its start")
    }

    @Test("Other bytes are not a reference")
    func notReferences() {
        let good = Data("genp".utf8) + Data(bytes)
        for bad in [Data(), good.dropLast(), good + [0], Data("genq".utf8) + Data(bytes), Data([0xFF, 0xFE, 0, 0]) + Data(bytes)] {
            #expect(PersistentReference(bad) == nil)
        }
    }

    @Test("Each class has a unique number, and is found by it")
    func classCodes() {
        #expect(Set(ItemClass.allCases.map(\.code)).count == ItemClass.allCases.count)
        for itemClass in ItemClass.allCases { #expect(ItemClass(code: itemClass.code) == itemClass) }
        #expect(ItemClass(code: 0) == nil && ItemClass(code: 6) == nil)
    }

    @Test("Accessibilities are numbered as in the on-disk format")
    func accessibilityCodes() {
        let codes: [(String, UInt8)] = [("ak", 6), ("ck", 7), ("dk", 8), ("aku", 9), ("cku", 10), ("dku", 11), ("akpu", 12)]
        for (name, code) in codes {
            #expect(ItemAccessibility(rawValue: name)?.code == code)
            #expect(ItemAccessibility(code: code)?.rawValue == name)
            #expect(ItemAccessibility(code: code)?.isThisDeviceOnly == name.hasSuffix("u"))
        }
        #expect(codes.count == ItemAccessibility.allCases.count)
        #expect(ItemAccessibility(code: 5) == nil && ItemAccessibility(code: 13) == nil)
    }
}
