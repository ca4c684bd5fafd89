// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import SecurityAPI

@Suite("Values of a caller's dictionary")
struct DictionaryValueTests {
    @Test(
        "Every form of text is text",
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
        "Every form of bytes is data",
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

    @Test("Data keeps no tie to the mutable data it came from")
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
        "Every width of integer is a number, and no Boolean",
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
        "A number that is no 64-bit integer is told apart, and traps nothing",
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

    @Test("The extreme integers are kept exactly", arguments: [Int64.min, .max] as [Int64])
    func extremes(number: Int64) {
        for value in [number, NSNumber(value: number), Int128(number)] as [Any] {
            guard case .integer(number) = DictionaryValue(value) else {
                Issue.record("parsed as \(DictionaryValue(value))")
                return
            }
        }
    }

    @Test(
        "Dates and identifiers are themselves, however they are wrapped",
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
        "Nothing is nothing, in every disguise",
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

    @Test("An access control object is one, also behind AnyHashable")
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
        "Types that no key takes are told apart, boxed or not",
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
