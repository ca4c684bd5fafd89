// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

/// Loads the test vectors in `TestVectors`, which another implementation of the format made.
enum TestVectors {
    static func load<Vectors: Decodable>(_ name: String, as type: Vectors.Type = Vectors.self) throws -> Vectors {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: root.appending(path: "TestVectors/\(name)")))
    }
}

/// Bytes, encoded in JSON as hexadecimal digits.
struct Hexadecimal: Decodable, Sendable {
    let bytes: [UInt8]

    init(_ text: String) throws {
        let digits = Array(text.utf8)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<min(start + 2, digits.count)], as: UTF8.self)
            bytes.append(try #require(pair.utf8.count == 2 ? UInt8(pair, radix: 16) : nil))
        }
        self.bytes = bytes
    }

    init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    func identifier() throws -> Identifier128 { try #require(Identifier128(bytes)) }
}
