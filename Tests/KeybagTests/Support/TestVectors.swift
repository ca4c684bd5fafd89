// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

/// Reads the vectors at the repository's root, which another implementation of the format made.
enum TestVectors {
    static func load<Vectors: Decodable>(_ name: String, as type: Vectors.Type = Vectors.self) throws -> Vectors {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: root.appending(path: "TestVectors/\(name)")))
    }
}

/// Bytes, in JSON as hexadecimal digits.
struct Hexadecimal: Decodable, Sendable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let digits = Array(try decoder.singleValueContainer().decode(String.self).utf8)
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[start..<min(start + 2, digits.count)], as: UTF8.self)
            bytes.append(try #require(pair.utf8.count == 2 ? UInt8(pair, radix: 16) : nil))
        }
        self.bytes = bytes
    }

    func identifier() throws -> Identifier128 { try #require(Identifier128(bytes)) }

    func secret() throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }
}

/// A value of an attribute; a number is text there, since not every JSON reader keeps large ones.
struct ValueVector: Decodable, Sendable {
    let attribute: UInt8
    let type: String
    let value: String?
    let seconds: Double?

    func parsed() throws -> (Attribute, AttributeValue) {
        let attribute = try #require(Attribute(rawValue: attribute))
        switch type {
        case "text": return (attribute, .string(try #require(value)))
        case "number": return (attribute, .number(try #require(value.flatMap(Int64.init))))
        case "date": return (attribute, .date(try #require(seconds)))
        default:
            let data = try JSONDecoder().decode([Hexadecimal].self, from: Data("[\"\(try #require(value))\"]".utf8))
            return (attribute, .data(Data(data[0].bytes)))
        }
    }
}

/// What opens the store of a set of vectors.
struct StoreVector: Decodable, Sendable {
    let storeID: Hexadecimal
    let deviceSecret: Hexadecimal
    let keybag: Hexadecimal

    func open() throws -> OpenKeybag {
        try OpenKeybag(copies: [keybag.bytes, keybag.bytes], storeID: storeID.identifier(), deviceSecret: deviceSecret.secret())
    }
}
