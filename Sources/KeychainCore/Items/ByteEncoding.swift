// SPDX-License-Identifier: Apache-2.0

/// The primitives of all on-disk encodings: little-endian numbers, and byte strings prefixed with their byte count.
extension [UInt8] {
    package mutating func append<Number: FixedWidthInteger>(littleEndian number: Number) {
        // The bytes of a local copy, copied within the closure.
        unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
    }

    /// Appends the sixteen bytes of an identifier.
    package mutating func append(_ identifier: Identifier128) {
        // Two numbers of eight bytes have no padding; copied within the closure.
        unsafe Swift.withUnsafeBytes(of: (identifier.high.bigEndian, identifier.low.bigEndian)) { unsafe append(contentsOf: $0) }
    }

    /// Appends a 32-bit byte count and the bytes, so that different lists of fields have different encodings.
    package mutating func append(lengthPrefixed bytes: [UInt8]) {
        append(littleEndian: UInt32(bytes.count))
        append(contentsOf: bytes)
    }
}

/// Reads the encodings above.
///
/// Every read is bounds-checked and returns nil at the end of the bytes.
package struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    package init(_ bytes: some Collection<UInt8>) {
        self.bytes = ArraySlice(bytes)
        position = self.bytes.startIndex
    }

    package var isAtEnd: Bool { position == bytes.endIndex }

    package mutating func readByte() -> UInt8? {
        guard position < bytes.endIndex else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    package mutating func readBytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, bytes.endIndex - position >= count else { return nil }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    package mutating func readLengthPrefixed() -> ArraySlice<UInt8>? {
        guard let count = readUInt32() else { return nil }
        return readBytes(Int(count))
    }

    package mutating func readUInt16() -> UInt16? { readInteger() }
    package mutating func readUInt32() -> UInt32? { readInteger() }
    package mutating func readUInt64() -> UInt64? { readInteger() }

    private mutating func readInteger<Number: FixedWidthInteger & UnsignedInteger>() -> Number? {
        guard let field = readBytes(Number.bitWidth / 8) else { return nil }
        return field.reversed().reduce(0) { $0 << 8 | Number($1) }
    }
}
