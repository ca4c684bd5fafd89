// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Attributes of a dictionary")
struct AttributeParsingTests {
    /// Returns the parsed value of an attribute, or the reason for rejecting it.
    private func parse(_ attribute: Attribute, _ value: Any) -> Result<AttributeValue, ValueFault> {
        Result { () throws(ValueFault) in try DictionaryValue(value).attributeValue(attribute.kind) }
    }

    private static func attributes(_ kinds: Attribute.Kind...) -> [Attribute] {
        Attribute.allCases.filter { kinds.contains($0.kind) }
    }

    @Test("A blob accepts text, data and numbers, and preserves their type", arguments: attributes(.blob))
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

    @Test("A string accepts text, UTF-8 data and identifiers", arguments: attributes(.string))
    func string(attribute: Attribute) {
        let uuid = UUID()
        #expect(parse(attribute, "a") == .success(.string("a")))
        #expect(parse(attribute, Data("é".utf8)) == .success(.string("é")))
        #expect(parse(attribute, uuid) == .success(.string(uuid.uuidString)))
        #expect(parse(attribute, Data([0xff])) == .failure(.value))
        for value in [true, 1, 1.5, NSNull(), Date(), [1]] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A number accepts numbers, Booleans and text; numeric text becomes a number", arguments: attributes(.number))
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

    @Test("A flag accepts Booleans, numbers and numeric text", arguments: attributes(.flag))
    func flag(attribute: Attribute) {
        for value in [true, 1, 2, -1, "1", NSNumber(value: true), NSNumber(value: 1)] as [Any] {
            #expect(parse(attribute, value) == .success(.number(1)))
        }
        for value in [false, 0, "0", NSNumber(value: false)] as [Any] { #expect(parse(attribute, value) == .success(.number(0))) }
        for value in ["yes", "", Double.infinity] as [Any] { #expect(parse(attribute, value) == .failure(.value)) }
        for value in [Data(), NSNull(), Date(), UUID()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A date accepts finite dates", arguments: attributes(.date))
    func date(attribute: Attribute) {
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: 1.5)) == .success(.date(1.5)))
        #expect(parse(attribute, NSDate(timeIntervalSinceReferenceDate: 1.5)) == .success(.date(1.5)))
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: .nan)) == .failure(.value))
        #expect(parse(attribute, Date(timeIntervalSinceReferenceDate: .infinity)) == .failure(.value))
        #expect(parse(attribute, Date.distantFuture) == .success(.date(Date.distantFuture.timeIntervalSinceReferenceDate)))
        for value in ["2001-01-01", 1.5, 1, Data(), NSNull()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("An accessibility accepts one of seven names", arguments: attributes(.accessibility))
    func accessibility(attribute: Attribute) {
        for value in ItemAccessibility.allCases {
            #expect(parse(attribute, value.rawValue) == .success(.string(value.rawValue)))
            #expect(parse(attribute, Data(value.rawValue.utf8)) == .success(.string(value.rawValue)))
        }
        for value in ["", "xy", "f", Data([0xff])] as [Any] { #expect(parse(attribute, value) == .failure(.value)) }
        for value in [true, 6, NSNull(), Date(), UUID()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("A digest accepts twenty bytes", arguments: attributes(.sha1))
    func sha1(attribute: Attribute) {
        #expect(parse(attribute, Data(count: 20)) == .success(.data(Data(count: 20))))
        for count in [0, 19, 21] { #expect(parse(attribute, Data(count: count)) == .failure(.value)) }
        for value in [String(repeating: "a", count: 20), 20, NSNull()] as [Any] { #expect(parse(attribute, value) == .failure(.type)) }
    }

    @Test("An identifier accepts sixteen bytes or none", arguments: attributes(.uuid))
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

    @Test("The tests above cover the kind of every attribute")
    func complete() {
        let tested: [Attribute.Kind] = [.blob, .string, .number, .flag, .date, .accessibility, .sha1, .uuid]
        #expect(Attribute.allCases.allSatisfy { tested.contains($0.kind) })
    }
}

@Suite("Values of a caller's dictionary")
struct DictionaryValueTests {
    @Test(
        "Text is recognized in every form",
        arguments: ([
            "a", "xay".dropFirst().dropLast() as Any, NSString(string: "a"), NSMutableString(string: "a"), AnyHashable("a"),
            AnyHashable(NSString(string: "a")), AnyHashable("a") as AnyObject, "a" as AnyObject, String?.some("a") as Any,
            String??.some(.some("a")) as Any, String?.some("a") as AnyObject, AnyHashable("xa".dropFirst()),
        ] as [Any]).map(Unchecked.init))
    func text(value: Unchecked) {
        guard case .string("a") = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }

    @Test(
        "Data is recognized in every form",
        arguments: ([
            Data([1, 2]), Data([0, 1, 2]).dropFirst(), NSData(data: Data([1, 2])), NSMutableData(data: Data([1, 2])),
            AnyHashable(Data([1, 2])), Data([1, 2]) as AnyObject, Data?.some(Data([1, 2])) as Any, AnyHashable(NSData(data: Data([1, 2]))),
        ] as [Any]).map(Unchecked.init))
    func data(value: Unchecked) {
        guard case .data(let data) = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
        #expect(data == Data([1, 2]))
    }

    @Test("Data is copied from mutable data")
    func mutableData() {
        let mutable = NSMutableData(data: Data([1]))
        let value = DictionaryValue(mutable)
        mutable.append(Data([2]))
        guard case .data(let data) = value else {
            Issue.record("parsed as \(value)")
            return
        }
        #expect(data == Data([1]))
    }

    @Test(
        "Booleans are not numbers",
        arguments: ([
            true, NSNumber(value: true), kCFBooleanTrue as Any, AnyHashable(true), true as AnyObject, AnyHashable(NSNumber(value: true)),
            Bool?.some(true) as Any, CFBoolean?.some(kCFBooleanTrue) as Any,
        ] as [Any]).map(Unchecked.init))
    func boolean(value: Unchecked) {
        guard case .boolean(true) = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }

    @Test(
        "Integers of every width are numbers, and not Booleans",
        arguments: ([
            1, Int8(1), Int16(1), Int32(1), Int64(1), UInt(1), UInt8(1), UInt16(1), UInt32(1), UInt64(1), Int128(1), NSNumber(value: 1),
            NSNumber(value: Int8(1)), NSNumber(value: UInt8(1)), NSNumber(value: UInt64(1)), 1.0, Float(1), CGFloat(1), Decimal(1),
            NSNumber(value: 1.0), NSDecimalNumber(value: 1), AnyHashable(1), AnyHashable(UInt8(1)), 1 as AnyObject, Int8(1) as AnyObject,
            Int?.some(1) as Any, AnyHashable(1.0),
        ] as [Any]).map(Unchecked.init))
    func integer(value: Unchecked) {
        guard case .integer(1) = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }

    @Test(
        "A number that is not a 64-bit integer is recognized, without a trap",
        arguments: ([
            1.5, Double.nan, Double.infinity, -Double.infinity, Double.signalingNaN, 1e300, Double.greatestFiniteMagnitude, 0x1p63,
            -0x1.8p63, Float.nan, Float.infinity, CGFloat.nan, UInt64.max, UInt.max, Int128.max, UInt128.max, Int128.min, Decimal.nan,
            Decimal(string: "1e60") as Any, NSNumber(value: Double.nan), NSNumber(value: 1e300), NSNumber(value: UInt64.max),
            NSNumber(value: Float.infinity), NSNumber(value: 0.5), NSDecimalNumber.notANumber, NSDecimalNumber.maximum,
            AnyHashable(Double.nan), AnyHashable(UInt64.max), Double.nan as AnyObject, UInt64.max as AnyObject,
        ] as [Any]).map(Unchecked.init))
    func unusableNumber(value: Unchecked) {
        guard case .unusableNumber = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }

    @Test("The smallest and largest integers are preserved exactly", arguments: [Int64.min, .max] as [Int64])
    func extremes(number: Int64) {
        for value in [number, NSNumber(value: number), Int128(number)] as [Any] {
            guard case .integer(number) = DictionaryValue(value) else {
                Issue.record("parsed as \(DictionaryValue(value))")
                return
            }
        }
    }

    @Test(
        "Dates and identifiers are recognized in every form",
        arguments: ([
            Date(timeIntervalSinceReferenceDate: 5), NSDate(timeIntervalSinceReferenceDate: 5),
            AnyHashable(Date(timeIntervalSinceReferenceDate: 5)), Date(timeIntervalSinceReferenceDate: 5) as AnyObject,
        ] as [Any]).map(Unchecked.init))
    func dates(value: Unchecked) {
        guard case .date(Date(timeIntervalSinceReferenceDate: 5)) = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
        let uuid = UUID()
        for value in [uuid, uuid as AnyObject, NSUUID(uuidString: uuid.uuidString) as Any, AnyHashable(uuid)] as [Any] {
            guard case .uuid(uuid) = DictionaryValue(value) else {
                Issue.record("parsed as \(DictionaryValue(value))")
                return
            }
        }
    }

    @Test(
        "Nil and NSNull are recognized in every form",
        arguments: ([
            NSNull(), String?.none as Any, Int?.none as Any, String??.some(.none) as Any, AnyHashable(String?.none), AnyHashable(NSNull()),
            String?.none as AnyObject, [String: String]()["absent"] as Any,
        ] as [Any]).map(Unchecked.init))
    func null(value: Unchecked) {
        guard case .null = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }

    @Test("An access control object is recognized, also behind AnyHashable")
    func accessControl() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [])
        for value in [object, AnyHashable(object), object as AnyObject, SecAccessControl?.some(object) as Any] as [Any] {
            guard case .accessControl(object) = DictionaryValue(value) else {
                Issue.record("parsed as \(DictionaryValue(value))")
                return
            }
        }
    }

    @Test(
        "Types that no key accepts are recognized, boxed or not",
        arguments: ([
            [UInt8(1)], [1: 2], ["a"], Unkeyable(), Unkeyable() as AnyObject, (1, 2), (1, 2) as AnyObject, Character("a"),
            StaticString("a"), URL(filePath: "/"), NSArray(), NSDictionary(), NSObject(), NSURL(fileURLWithPath: "/"), Choice.one,
            Choice.one as AnyObject, AnyHashable(Choice.one), { 1 } as () -> Int, Int.self, 1...2, [Int]?.some([1]) as Any, Data.self,
            NSError(domain: "", code: 1), Set([1]), DateComponents(), IndexPath(index: 1), Locale(identifier: "C"),
        ] as [Any]).map(Unchecked.init))
    func other(value: Unchecked) {
        guard case .other = DictionaryValue(value.any) else {
            Issue.record("parsed as \(DictionaryValue(value.any))")
            return
        }
    }
}

private struct Unkeyable {}

private enum Choice: String {
    case one
}
