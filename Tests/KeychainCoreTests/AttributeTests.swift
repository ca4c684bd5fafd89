// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@Suite("Equality of attribute values in a search")
struct AttributeValueTests {
    @Test(
        "Values with the same bytes match, whatever their type",
        arguments: [
            (AttributeValue.string("a"), AttributeValue.data(Data("a".utf8))),
            (.string(""), .data(Data())),
            (.string("ż"), .data(Data([0xC5, 0xBC]))),
            (.number(1), .data(Data([1, 0, 0, 0]))),
            (.number(-1), .data(Data([255, 255, 255, 255]))),
            (.number(Int64(Int32.max) + 1), .data(Data([0, 0, 0, 128, 0, 0, 0, 0]))),
            (.date(0), .data(Data(count: 8))),
        ]
    )
    func sameBytes(_ left: AttributeValue, _ right: AttributeValue) {
        #expect(left.matches(right) && right.matches(left) && left.matches(left))
        #expect(left != right, "they are still two values")
    }

    @Test(
        "Values with different bytes do not match",
        arguments: [
            (AttributeValue.string("a"), AttributeValue.string("A")),
            (.string("a"), .string("a\0")),
            (.string(""), .string("\0")),
            (.string("1"), .number(1)),
            (.number(1), .data(Data([1]))),
            (.number(1), .data(Data([1, 0, 0, 0, 0, 0, 0, 0]))),
            (.number(0), .string("")),
            (.date(1), .date(1.5)),
        ]
    )
    func otherBytes(_ left: AttributeValue, _ right: AttributeValue) {
        #expect(!left.matches(right) && !right.matches(left))
    }

    @Test("Canonically equivalent strings do not match")
    func canonicalEquivalence() {
        // Swift considers the strings equal. Their digests differ, so they must not match.
        let composed = AttributeValue.string("\u{E9}")
        let decomposed = AttributeValue.string("e\u{301}")
        #expect(!composed.matches(decomposed))
        #expect(composed != decomposed && Set([composed, decomposed]).count == 2)
        #expect(ItemAttributes([.account: composed]) != ItemAttributes([.account: decomposed]))
    }

    @Test("Equal values have equal hashes")
    func hashing() {
        for value in [AttributeValue.string("a"), .data(Data([1])), .number(-1), .date(.nan), .date(-0.0)] {
            #expect(value == value && Set([value, value]).count == 1)
        }
        #expect(AttributeValue.date(0) != .date(-0.0))
    }
}

@Suite("Attributes of an item")
struct ItemAttributesTests {
    @Test("Entries are ordered by number, independent of the order in which they were set")
    func order() {
        var attributes = ItemAttributes()
        for attribute in Attribute.allCases.shuffled() { attributes[attribute] = .number(Int64(attribute.rawValue)) }
        #expect(attributes.entries.map(\.attribute.rawValue) == Attribute.allCases.map(\.rawValue).sorted())
        for attribute in Attribute.allCases { #expect(attributes[attribute] == .number(Int64(attribute.rawValue))) }
    }

    @Test("Setting a value replaces it, and setting nil removes it")
    func replacing() {
        var attributes = ItemAttributes([.account: .string("a"), .service: .string("b")])
        attributes[.account] = .string("c")
        attributes[.service] = nil
        attributes[.label] = nil
        #expect(attributes == ItemAttributes([.account: .string("c")]))
        attributes[.account] = nil
        #expect(attributes.isEmpty)
    }

    @Test("Changes replace existing values and add new ones")
    func updating() {
        let old = ItemAttributes([.account: .string("a"), .service: .string("b")])
        let new = old.updated(with: ItemAttributes([.account: .string("c"), .label: .string("d")]))
        #expect(new == ItemAttributes([.account: .string("c"), .service: .string("b"), .label: .string("d")]))
    }

    @Test("Typed accessors return nil for other types")
    func typedReaders() {
        let attributes = ItemAttributes([
            .account: .string("a"), .generic: .data(Data()), .synchronizable: .number(2), .creationDate: .date(3),
        ])
        #expect(attributes.text(.account) == "a" && attributes.text(.generic) == nil && attributes.text(.label) == nil)
        #expect(attributes.flag(.synchronizable) == true && attributes.flag(.account) == nil)
        #expect(attributes.seconds(.creationDate) == 3 && attributes.seconds(.account) == nil)
    }

    @Test("Each attribute has a unique four-letter name, and is found by it", arguments: Attribute.allCases)
    func names(_ attribute: Attribute) {
        #expect(attribute.name.utf8.count == 4)
        #expect(Attribute(name: attribute.name) == attribute)
        #expect(Attribute(name: attribute.name + " ") == nil)
    }

    @Test("Both classes have the attributes of their primary key", arguments: [ItemClass.genericPassword, .internetPassword])
    func primaryKeys(_ itemClass: ItemClass) {
        let attributes = PrimaryKey.attributes(of: itemClass)
        #expect(attributes.allSatisfy { $0.belongs(to: itemClass) })
        #expect(attributes.map(\.rawValue) == attributes.map(\.rawValue).sorted())
        let leading = PrimaryKey.leading(of: itemClass)
        #expect(attributes.contains(leading.service) && attributes.contains(leading.account))
    }

    @Test("A password has no attribute of the other class")
    func foreignAttributes() {
        #expect(!Attribute.server.belongs(to: .genericPassword) && Attribute.server.belongs(to: .internetPassword))
        #expect(!Attribute.service.belongs(to: .internetPassword) && Attribute.service.belongs(to: .genericPassword))
        #expect(!Attribute.account.belongs(to: .certificate))
    }
}

@Suite("The encoding of attributes")
struct AttributesEncodingTests {
    struct Vectors: Decodable {
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let expect: String
        let entries: [ValueVector]?
        let encoded: Hexadecimal

        var testDescription: String { name }

        func attributes() throws -> ItemAttributes {
            var attributes = ItemAttributes()
            for entry in try #require(entries) {
                let (attribute, value) = try entry.parsed()
                attributes[attribute] = value
            }
            return attributes
        }
    }

    static let vectors = Result { try TestVectors.load("attributes-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors contain valid and invalid cases")
    func vectorsAreRead() throws {
        #expect(Set(try Self.vectors.get().cases.map(\.expect)) == ["parses", "refused"])
    }

    @Test("Attributes have the documented encoding, and are decoded from it", arguments: cases.filter { $0.expect == "parses" })
    func roundTrip(_ vector: Case) throws {
        let attributes = try vector.attributes()
        #expect(attributes.encoded == vector.encoded.bytes)
        #expect(ItemAttributes(encoded: vector.encoded.bytes) == attributes)
        #expect(ItemAttributes(encoded: Data(vector.encoded.bytes)) == attributes)
    }

    @Test("Encodings other than the canonical one are refused", arguments: cases.filter { $0.expect == "refused" })
    func refusal(_ vector: Case) {
        #expect(ItemAttributes(encoded: vector.encoded.bytes) == nil)
    }

    @Test("Unwanted attributes are dropped, but still have to be canonical", arguments: cases)
    func selection(_ vector: Case) throws {
        let encoded = vector.encoded.bytes
        let all = ItemAttributes(encoded: encoded.span, keeping: .all)
        #expect(ItemAttributes(encoded: encoded.span, keeping: .none) == all.map { _ in ItemAttributes() })
        for attribute in [Attribute.account, .creationDate, .port] {
            let kept = ItemAttributes(encoded: encoded.span, keeping: .only(attribute))
            #expect(kept?.entries == all?.entries.filter { $0.attribute == attribute })
        }
    }

    @Test("A truncated encoding is refused, or is the encoding of fewer attributes")
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

    @Test("Arbitrary bytes that can be parsed encode to the same bytes")
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

/// A small generator with a seed, so that failures are reproducible.
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
