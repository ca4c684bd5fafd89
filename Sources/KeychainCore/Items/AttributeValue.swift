// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// The value of an attribute, in the type in which the caller passed it and gets it back.
package enum AttributeValue: Hashable, Sendable {
    case string(String)
    case data(Data)
    case number(Int64)
    /// Seconds since 2001-01-01 00:00:00 UTC, as in `Date.timeIntervalSinceReferenceDate`.
    case date(Double)

    /// Calls `body` with the bytes that determine equality.
    ///
    /// The buffer is valid only inside `body`.
    ///
    /// Text and data with the same bytes are the same value, and a number that fits has the bytes of a
    /// little-endian Int32 (case 87 of SecItem-behavior.md: a String "a" and a Data "a" collide as primary keys).
    package func withComparedBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch self {
        case .string(var text):
            return text.withUTF8 { unsafe body(UnsafeRawBufferPointer($0)) }
        case .data(let data):
            return unsafe data.withUnsafeBytes(body)
        case .number(let number):
            if let small = Int32(exactly: number) {
                return unsafe withUnsafeBytes(of: small.littleEndian, body)
            }
            return unsafe withUnsafeBytes(of: number.littleEndian, body)
        case .date(let seconds):
            return unsafe withUnsafeBytes(of: seconds.bitPattern.littleEndian, body)
        }
    }

    var byteCount: Int { unsafe withComparedBytes { $0.count } }

    /// Returns whether both have the same type and the same bytes.
    ///
    /// Text is compared as in `String.hasSameBytes(as:)`.
    package static func == (left: AttributeValue, right: AttributeValue) -> Bool {
        switch (left, right) {
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.data(let left), .data(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.date(let left), .date(let right)): left.bitPattern == right.bitPattern
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        // The hasher reads the bytes within the closure. Values that differ only in type may share a hash.
        unsafe withComparedBytes { unsafe hasher.combine(bytes: $0) }
    }

    /// Returns whether the values are equal to a search, which compares bytes and ignores types.
    package func matches(_ other: AttributeValue) -> Bool {
        if self == other { return true }
        return unsafe withComparedBytes { mine in
            unsafe other.withComparedBytes { theirs in unsafe mine.hasSameBytes(as: theirs) }
        }
    }
}

/// Comparison of strings by their UTF-8 bytes, as a keychain requires.
///
/// Swift's `==` uses Unicode canonical equivalence: a precomposed and a decomposed letter are equal. In a keychain they are different
/// names.
extension String {
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        var (mine, theirs) = (self, other)
        return mine.withUTF8 { mine in
            theirs.withUTF8 { theirs in unsafe UnsafeRawBufferPointer(mine).hasSameBytes(as: UnsafeRawBufferPointer(theirs)) }
        }
    }

    package func hasSuffixOfSameBytes(as suffix: String) -> Bool {
        utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

extension UnsafeRawBufferPointer {
    /// Compares eight bytes at a time: every call compares names, and `elementsEqual` takes ten times as many instructions.
    fileprivate func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var offset = 0
        // Every offset is below the count of both; loadUnaligned has no alignment rule.
        while offset + 8 <= count {
            let mine = unsafe loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            guard unsafe other.loadUnaligned(fromByteOffset: offset, as: UInt64.self) == mine else { return false }
            offset += 8
        }
        while offset < count {
            guard unsafe self[offset] == other[offset] else { return false }
            offset += 1
        }
        return true
    }
}
