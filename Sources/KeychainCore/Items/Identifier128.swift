// SPDX-License-Identifier: Apache-2.0

/// Sixteen bytes that identify a store, an item, a revision, or a searchable value.
package struct Identifier128: Hashable, Sendable {
    /// The first eight bytes as a big-endian number; `low` is the last eight.
    package let high: UInt64
    package let low: UInt64

    package static let byteCount = 16

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads the sixteen bytes at the start of a buffer, without an intermediate array.
    package init?(buffer: UnsafeRawBufferPointer) {
        guard buffer.count >= Self.byteCount else { return nil }
        // The count is checked above; loadUnaligned has no alignment rule.
        high = unsafe UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = unsafe UInt64(bigEndian: buffer.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// Returns a random identifier.
    package static func random() -> Identifier128 {
        var generator = SystemRandomNumberGenerator()
        return Identifier128(high: generator.next(), low: generator.next())
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(self)
        return bytes
    }

    /// Parses 32 hexadecimal digits.
    package init?(hexadecimal text: some StringProtocol) {
        let digits = text.utf8.compactMap { UInt8(String(UnicodeScalar($0)), radix: 16) }
        guard digits.count == 2 * Self.byteCount, digits.count == text.utf8.count else { return nil }
        self.init((0..<Self.byteCount).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] })
    }

    /// 32 lower-case hexadecimal digits.
    package var hexadecimal: String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}

/// Identifies a store, in its file, in its key file's name, and in all authenticated data.
package typealias StoreID = Identifier128
/// Identifies an item permanently: the last sixteen bytes of its persistent reference.
package typealias ItemID = Identifier128
/// A keyed digest that represents a searchable value on disk.
package typealias IndexDigest = Identifier128
