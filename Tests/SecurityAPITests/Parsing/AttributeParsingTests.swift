// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Attributes of a dictionary")
struct AttributeParsingTests {
    /// What an attribute becomes, or why not.
    private func parse(_ attribute: Attribute, _ value: Any) -> Result<AttributeValue, ValueFault> {
        Result { () throws(ValueFault) in try DictionaryValue(value).attributeValue(attribute.kind) }
    }

    private static func attributes(_ kinds: Attribute.Kind...) -> [Attribute] {
        Attribute.allCases.filter { kinds.contains($0.kind) }
    }

    @Test("A blob takes text, data and numbers, and keeps the type it was given", arguments: attributes(.blob))
    func blob(attribute: Attribute) {
        #expect(parse(attribute, "a") == .success(.string("a")))
        #expect(parse(attribute, "") == .success(.string("")))
        #expect(parse(attribute, "a\0b\n") == .success(.string("a\0b\n")))
        #expect(parse(attribute, Data([0xff])) == .success(.data(Data([0xff]))))
        #expect(parse(attribute, Data()) == .success(.data(Data())))
        #expect(parse(attribute, 5) == .success(.number(5)))
        #expect(parse(attribute, Double.nan) == .failure(.value))
        for value in [true, NSNull(), Date(), UUID(), [1], [1: 1]] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A string takes text, UTF-8 and identifiers", arguments: attributes(.string))
    func string(attribute: Attribute) {
        let uuid = UUID()
        #expect(parse(attribute, "a") == .success(.string("a")))
        #expect(parse(attribute, Data("é".utf8)) == .success(.string("é")))
        #expect(parse(attribute, uuid) == .success(.string(uuid.uuidString)))
        #expect(parse(attribute, Data([0xff])) == .failure(.value))
        for value in [true, 1, 1.5, NSNull(), Date(), [1]] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A number takes numbers, Booleans and text, which stays text unless it is a number", arguments: attributes(.number))
    func number(attribute: Attribute) {
        #expect(parse(attribute, 443) == .success(.number(443)))
        #expect(parse(attribute, -1) == .success(.number(-1)))
        #expect(parse(attribute, true) == .success(.number(1)))
        #expect(parse(attribute, kCFBooleanFalse as Any) == .success(.number(0)))
        #expect(parse(attribute, "443") == .success(.number(443)))
        #expect(parse(attribute, "http") == .success(.string("http")))
        #expect(parse(attribute, "") == .success(.string("")))
        #expect(parse(attribute, "99999999999999999999") == .success(.string("99999999999999999999")))
        #expect(parse(attribute, UInt64.max) == .failure(.value))
        #expect(parse(attribute, 0.5) == .failure(.value))
        for value in [Data(), NSNull(), Date(), UUID(), [1]] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A flag takes Booleans, numbers and numeric text", arguments: attributes(.flag))
    func flag(attribute: Attribute) {
        for value in [true, 1, 2, -1, "1", NSNumber(value: true), NSNumber(value: 1)] as [Any] {
            #expect(parse(attribute, value) == .success(.number(1)))
        }
        for value in [false, 0, "0", NSNumber(value: false)] as [Any] { #expect(parse(attribute, value) == .success(.number(0))) }
        for value in ["yes", "", Double.infinity] as [Any] { #expect(parse(attribute, value) == .failure(.value)) }
        for value in [Data(), NSNull(), Date(), UUID()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A date takes dates that are a point in time", arguments: attributes(.date))
    func date(attribute: Attribute) {
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: 1.5)) == .success(.date(1.5)))
        #expect(parse(attribute, NSDate(timeIntervalSinceReferenceDate: 1.5)) == .success(.date(1.5)))
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: .nan)) == .failure(.value))
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: .infinity)) == .failure(.value))
        #expect(parse(attribute, Date.distantFuture) == .success(.date(Date.distantFuture.timeIntervalSinceReferenceDate)))
        for value in ["2001-01-01", 1.5, 1, Data(), NSNull()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("An accessibility takes one of seven names", arguments: attributes(.accessibility))
    func accessibility(attribute: Attribute) {
        for value in Accessibility.allCases {
            #expect(parse(attribute, value.rawValue) == .success(.string(value.rawValue)))
            #expect(parse(attribute, Data(value.rawValue.utf8)) == .success(.string(value.rawValue)))
        }
        for value in ["", "xy", "f", Data([0xff])] as [Any] { #expect(parse(attribute, value) == .failure(.value)) }
        for value in [true, 6, NSNull(), Date(), UUID()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A digest takes twenty bytes", arguments: attributes(.sha1))
    func sha1(attribute: Attribute) {
        #expect(parse(attribute, Data(count: 20)) == .success(.data(Data(count: 20))))
        for count in [0, 19, 21] { #expect(parse(attribute, Data(count: count)) == .failure(.value)) }
        for value in [String(repeating: "a", count: 20), 20, NSNull()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("An identifier takes sixteen bytes or none", arguments: attributes(.uuid))
    func identifier(attribute: Attribute) {
        let uuid = UUID()
        let bytes = unsafe withUnsafeBytes(of: uuid.uuid) { unsafe Data($0) }
        #expect(parse(attribute, uuid) == .success(.data(bytes)))
        #expect(parse(attribute, bytes) == .success(.data(bytes)))
        #expect(parse(attribute, Data()) == .success(.data(Data())))
        #expect(parse(attribute, NSNull()) == .success(.data(Data())))
        for count in [1, 15, 17] { #expect(parse(attribute, Data(count: count)) == .failure(.value)) }
        for value in [uuid.uuidString, 1, true] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("Every attribute has a kind that was tested above")
    func complete() {
        let tested: [Attribute.Kind] = [.blob, .string, .number, .flag, .date, .accessibility, .sha1, .uuid]
        #expect(Attribute.allCases.allSatisfy { tested.contains($0.kind) })
    }
}
