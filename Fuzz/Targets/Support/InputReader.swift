// SPDX-License-Identifier: Apache-2.0

/// Splits an input into small choices and byte strings; at its end it returns zeros and empty strings.
struct InputReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func flag() -> Bool { byte() & 1 == 1 }

    /// Reads a number below `limit`.
    mutating func choice(below limit: Int) -> Int { Int(byte()) % limit }

    mutating func number() -> UInt64 { (0..<8).reduce(0) { number, _ in number << 8 | UInt64(byte()) } }

    /// Reads up to 255 bytes, preceded by their count.
    mutating func bytes() -> [UInt8] { take(Int(byte())) }

    /// Reads up to 65535 bytes, preceded by their count.
    mutating func manyBytes() -> [UInt8] { take(Int(byte()) << 8 | Int(byte())) }

    mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }

    private mutating func take(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}

extension [UInt8] {
    /// Encodes bytes for `InputReader.bytes`.
    static func counted(_ bytes: some Collection<UInt8>) -> [UInt8] { [UInt8(bytes.count)] + bytes }

    /// Encodes bytes for `InputReader.manyBytes`.
    static func countedMany(_ bytes: some Collection<UInt8>) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes }
}
