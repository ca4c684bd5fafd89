// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@Suite("The parts of every encoding")
struct CanonicalBytesTests {
    @Test("Numbers are little-endian, bytes stand behind their count, identifiers as they are")
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

    @Test("What was written is read back, to the end")
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

    @Test("Too few bytes are nil, never a trap")
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

    @Test("A slice is read from its own start")
    func slice() {
        let bytes: [UInt8] = [1, 2, 3, 4]
        var reader = ByteReader(bytes[2...])
        #expect(reader.readByte() == 3 && reader.readByte() == 4 && reader.isAtEnd)
    }
}
