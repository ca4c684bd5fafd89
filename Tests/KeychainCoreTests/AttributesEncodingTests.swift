// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@Suite("The encoding of attributes")
struct AttributesEncodingTests {
    struct Vectors: Decodable {
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct Entry: Decodable, Sendable {
            let attribute: UInt8
            let type: String
            /// Numbers are text here, since not every JSON reader keeps large ones.
            let value: String?
            let seconds: Double?
        }

        let name: String
        let expect: String
        let entries: [Entry]?
        let encoded: Hexadecimal

        var testDescription: String { name }

        func attributes() throws -> ItemAttributes {
            var attributes = ItemAttributes()
            for entry in try #require(entries) {
                let attribute = try #require(Attribute(rawValue: entry.attribute))
                switch entry.type {
                case "text": attributes[attribute] = .string(try #require(entry.value))
                case "number": attributes[attribute] = .number(try #require(entry.value.flatMap(Int64.init)))
                case "date": attributes[attribute] = .date(try #require(entry.seconds))
                default: attributes[attribute] = .data(Data(try Hexadecimal(#require(entry.value)).bytes))
                }
            }
            return attributes
        }
    }

    static let vectors = Result { try TestVectors.load("attributes-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors are read, valid and refused ones")
    func vectorsAreRead() throws {
        #expect(Set(try Self.vectors.get().cases.map(\.expect)) == ["parses", "refused"])
    }

    @Test("Attributes have the documented encoding, and come back from it", arguments: cases.filter { $0.expect == "parses" })
    func roundTrip(_ vector: Case) throws {
        let attributes = try vector.attributes()
        #expect(attributes.encoded == vector.encoded.bytes)
        #expect(ItemAttributes(encoded: vector.encoded.bytes) == attributes)
        #expect(ItemAttributes(encoded: Data(vector.encoded.bytes)) == attributes)
    }

    @Test("Anything but the canonical form is refused", arguments: cases.filter { $0.expect == "refused" })
    func refusal(_ vector: Case) {
        #expect(ItemAttributes(encoded: vector.encoded.bytes) == nil)
    }

    @Test("What is not wanted is not kept, and refused all the same where it is not canonical", arguments: cases)
    func selection(_ vector: Case) throws {
        let encoded = vector.encoded.bytes
        let all = ItemAttributes(encoded: encoded.span, keeping: .all)
        #expect(ItemAttributes(encoded: encoded.span, keeping: .none) == all.map { _ in ItemAttributes() })
        for attribute in [Attribute.account, .creationDate, .port] {
            let kept = ItemAttributes(encoded: encoded.span, keeping: .only(attribute))
            #expect(kept?.entries == all?.entries.filter { $0.attribute == attribute })
        }
    }

    @Test("An encoding that is cut anywhere is refused, or is that of fewer attributes")
    func truncation() throws {
        let attributes = ItemAttributes([
            .account: .string("a"), .service: .data(Data([1, 2])), .port: .number(3), .creationDate: .date(4),
        ])
        let encoded = attributes.encoded
        for count in 0..<encoded.count {
            let parsed = ItemAttributes(encoded: encoded.prefix(count))
            #expect(parsed == nil || parsed?.encoded == Array(encoded.prefix(count)), "\(count) bytes")
        }
    }

    @Test("Whatever bytes arrive, what is parsed encodes to those same bytes")
    func canonicity() {
        var generator = SplitMix(state: 7)
        let base = ItemAttributes([.account: .string("añb"), .generic: .data(Data([0, 255])), .synchronizable: .number(1)]).encoded
        for _ in 0..<20_000 {
            var bytes = base
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...40, using: &generator)
            }
            if let parsed = ItemAttributes(encoded: bytes) { #expect(parsed.encoded == bytes) }
        }
    }
}

/// A small generator with a seed, so that a failure comes again.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
