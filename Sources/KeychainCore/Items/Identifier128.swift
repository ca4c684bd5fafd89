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
        self.init(ArraySlice(bytes))
    }

    // Not generic, like the parsing of digits below: a listing of the storage has thousands of identifiers, and generic code of another module takes
    // several times as long.
    package init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var words: (high: UInt64, low: UInt64) = (0, 0)
        for byte in bytes { words = (words.high << 8 | words.low >> 56, words.low << 8 | UInt64(byte)) }
        self.init(high: words.high, low: words.low)
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
        self.init(hexadecimalDigits: Array(text.utf8)[...])
    }

    /// Parses the ASCII characters of 32 hexadecimal digits.
    package init?(hexadecimalDigits digits: ArraySlice<UInt8>) {
        var words: (high: UInt64, low: UInt64) = (0, 0)
        var count = 0
        for character in digits {
            guard let digit = Self.digit(character), count < 2 * Self.byteCount else { return nil }
            words = (words.high << 4 | words.low >> 60, words.low << 4 | UInt64(digit))
            count += 1
        }
        guard count == 2 * Self.byteCount else { return nil }
        self.init(high: words.high, low: words.low)
    }

    package static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// 32 lower-case hexadecimal digits.
    package var hexadecimal: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(2 * Self.byteCount)
        for word in [high, low] {
            for shift in stride(from: 60, through: 0, by: -4) {
                let digit = UInt8(truncatingIfNeeded: word >> UInt64(shift)) & 15
                digits.append(digit < 10 ? digit + UInt8(ascii: "0") : digit - 10 + UInt8(ascii: "a"))
            }
        }
        return String(decoding: digits, as: UTF8.self)
    }
}

/// Identifies a store, in its file, in its key file's name, and in all authenticated data.
package typealias StoreID = Identifier128
/// Identifies an item permanently: the last sixteen bytes of its persistent reference.
package typealias ItemID = Identifier128
/// A keyed digest that represents a searchable value on disk.
package typealias IndexDigest = Identifier128
