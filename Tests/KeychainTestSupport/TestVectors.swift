// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

/// Loads the test vectors in `TestVectors`, which another implementation of the formats made.
package enum TestVectors {
    /// A text that is not of the expected form.
    package struct Malformed: Error {
        let text: String
    }

    package static func load<Vectors: Decodable>(_ name: String, as type: Vectors.Type = Vectors.self) throws -> Vectors {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: root.appending(path: "TestVectors/\(name)")))
    }
}

/// Bytes, encoded in JSON as hexadecimal digits.
package struct Hexadecimal: Decodable, Sendable {
    package let bytes: [UInt8]

    package init(_ text: String) throws {
        let digits = Array(text.utf8)
        bytes = try stride(from: 0, to: digits.count, by: 2).map { start in
            let pair = String(decoding: digits[start..<min(start + 2, digits.count)], as: UTF8.self)
            guard pair.utf8.count == 2, let byte = UInt8(pair, radix: 16) else { throw TestVectors.Malformed(text: text) }
            return byte
        }
    }

    package init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    package func identifier() throws -> Identifier128 { try Identifier128(bytes).orMalformed("\(bytes)") }
}

/// The value of an attribute.
///
/// Numbers are strings, because some JSON readers lose digits of large ones.
package struct ValueVector: Decodable, Sendable {
    let attribute: UInt8
    let type: String
    let value: String?
    let seconds: Double?

    package func parsed() throws -> (Attribute, AttributeValue) {
        let attribute = try Attribute(rawValue: attribute).orMalformed("attribute \(attribute)")
        if type == "date" { return (attribute, .date(try seconds.orMalformed("a date"))) }
        let value = try value.orMalformed("a value")
        switch type {
        case "text": return (attribute, .string(value))
        case "number": return (attribute, .number(try Int64(value).orMalformed(value)))
        default: return (attribute, .data(Data(try Hexadecimal(value).bytes)))
        }
    }
}

/// The header of a row.
package struct RowHeaderVector: Decodable, Sendable {
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

    package func parsed() throws -> RowHeader {
        let itemClass = try ItemClass(code: itemClass).orMalformed("class \(itemClass)")
        return RowHeader(
            formatVersion: formatVersion, reference: PersistentReference(itemClass: itemClass, id: try itemID.identifier()),
            accessibility: try ItemAccessibility(code: accessibility).orMalformed("accessibility \(accessibility)"),
            classKeyGeneration: classKeyGeneration, revision: try revision.identifier(), isSynchronizable: isSynchronizable,
            isTombstone: isTombstone, serviceDigest: try serviceDigest.identifier(), accountDigest: try accountDigest.identifier(),
            remainingKeyDigest: try remainingKeyDigest.identifier(), accessGroupDigest: try accessGroupDigest.identifier(),
            attributeDigests: try RowHeader.unpacked(attributeDigests.bytes).orMalformed("digests"), constraints: constraints?.bytes
        )
    }
}

extension Optional {
    fileprivate func orMalformed(_ text: @autoclosure () -> String) throws -> Wrapped {
        guard let self else { throw TestVectors.Malformed(text: text()) }
        return self
    }
}
