// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

/// An attribute and the class of the item that has it.
private struct Column: CustomTestStringConvertible, Sendable {
    let kind: Item.Kind
    let key: CFString

    init(_ kind: Item.Kind, _ key: CFString) {
        self.kind = kind
        self.key = key
    }

    var testDescription: String { "\(kind) \(key)" }

    static func of(both keys: [CFString], generic: [CFString] = [], internet: [CFString] = []) -> [Column] {
        (keys + generic).map { Column(.generic, $0) } + (keys + internet).map { Column(.internet, $0) }
    }

    /// Adds an item with this value, and returns the stored value, found by a query for the value itself.
    func comesBack(as value: any Sendable) throws -> PlainValue? {
        let dictionary = kind.item.with(key, value)
        try #require(add(dictionary).status == errSecSuccess)
        return PlainValue(attributes(of: dictionary)?[key])
    }
}

/// The value in a call, and the value in its result.
private struct Coercion: CustomTestStringConvertible, Sendable {
    let value: any Sendable
    let result: PlainValue

    init(_ value: any Sendable, _ result: PlainValue) {
        self.value = value
        self.result = result
    }

    var testDescription: String { "\(value) as \(type(of: value)) gives \(result)" }
}

private struct Refused: CustomTestStringConvertible, Sendable {
    let value: any Sendable

    init(_ value: any Sendable) {
        self.value = value
    }

    var testDescription: String { "\(value) as \(type(of: value))" }
}

private let bytes = Data([0, 1, 0xfe, 0xff])
private let identifier = UUID(uuidString: "6BA7B810-9DAD-11D1-80B4-00C04FD430C8") ?? UUID()

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 2.1: types of values", .keychain)
struct CoercionTests {
    private static let blobs = Column.of(
        both: [
            kSecAttrAccount, kSecAttrLabel, kSecAttrDescription, kSecAttrComment, PrivateKey.alias, PrivateKey.protected,
        ],
        generic: [kSecAttrService, kSecAttrGeneric],
        internet: [kSecAttrServer, kSecAttrPath, kSecAttrAuthenticationType, kSecAttrSecurityDomain])

    private static let numbers = Column.of(
        both: [
            kSecAttrCreator, kSecAttrType, PrivateKey.scriptCode, kSecAttrIsInvisible, kSecAttrIsNegative, PrivateKey.hasCustomIcon,
        ],
        internet: [kSecAttrPort, kSecAttrProtocol])

    @Test(
        "A blob attribute returns text, data and numbers in their original type", arguments: blobs,
        [
            Coercion("text", .text("text")), Coercion("", .text("")), Coercion("t\u{0}x\u{0301}", .text("t\u{0}x\u{0301}")),
            Coercion(Substring("part"), .text("part")), Coercion(bytes, .data(bytes)), Coercion(Data(), .data(Data())),
            Coercion(7, .number(7)), Coercion(Int64(-7), .number(-7)), Coercion(UInt8(7), .number(7)),
            Coercion(NSNumber(value: 7), .number(7)),
        ])
    private func blob(column: Column, coercion: Coercion) throws {
        #expect(try column.comesBack(as: coercion.value) == coercion.result)
    }

    @Test(
        "A blob attribute rejects every other type", arguments: blobs,
        [Refused(true), Refused(Date.now), Refused(["text"]), Refused(["key": "value"]), Refused(NSNull()), Refused(identifier)])
    private func blobRefuses(column: Column, refused: Refused) {
        #expect(add(column.kind.item.with(column.key, refused.value)).status == errSecParam)
        #expect(find(column.kind.query.with(column.key, refused.value)).status == errSecParam)
    }

    @Test(
        "A number attribute accepts numbers, Booleans and text, and preserves text that is not numeric", arguments: numbers,
        [
            Coercion(7, .number(7)), Coercion(UInt16(8080), .number(8080)), Coercion(Int32(-1), .number(-1)),
            Coercion(NSNumber(value: 7), .number(7)), Coercion(true, .number(1)), Coercion(false, .number(0)),
            Coercion("80", .number(80)), Coercion("-80", .number(-80)), Coercion("http", .text("http")),
            Coercion("80 and more", .text("80 and more")), Coercion("", .text("")),
        ])
    private func number(column: Column, coercion: Coercion) throws {
        #expect(try column.comesBack(as: coercion.value) == coercion.result)
    }

    @Test(
        "A number attribute rejects every other value", arguments: numbers,
        [Refused(bytes), Refused(Date.now), Refused([7]), Refused(NSNull()), Refused(identifier)])
    private func numberRefuses(column: Column, refused: Refused) {
        #expect(add(column.kind.item.with(column.key, refused.value)).status == errSecParam)
        #expect(find(column.kind.query.with(column.key, refused.value)).status == errSecParam)
    }

    private static let strings = Column.of(both: [kSecAttrAccessGroup, kSecAttrSyncViewHint])

    @Test(
        "A string attribute accepts text, UTF-8 and UUIDs, and returns text",
        .keychain(accessGroups: ["text", identifier.uuidString]), arguments: strings,
        [
            Coercion("text", .text("text")), Coercion(Data("text".utf8), .text("text")),
            Coercion(identifier, .text(identifier.uuidString)),
        ])
    private func string(column: Column, coercion: Coercion) throws {
        #expect(try column.comesBack(as: coercion.value) == coercion.result)
    }

    @Test(
        "A string attribute rejects every other value", arguments: strings,
        [Refused(7), Refused(true), Refused(bytes), Refused(Date.now), Refused(["text"]), Refused(NSNull())])
    private func stringRefuses(column: Column, refused: Refused) {
        #expect(add(column.kind.item.with(column.key, refused.value)).status == errSecParam)
        #expect(find(column.kind.query.with(column.key, refused.value)).status == errSecParam)
    }

    private static let accessibilities = [
        kSecAttrAccessibleWhenUnlocked, kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessibleAlways,
        kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        kSecAttrAccessibleAlwaysThisDeviceOnly,
    ]

    @Test("An accessibility may be text or UTF-8 data", arguments: accessibilities, [true, false])
    func accessibility(name: CFString, asData: Bool) throws {
        let text = name as String
        let value: any Sendable = asData ? Data(text.utf8) : text
        #expect(try Column(.generic, kSecAttrAccessible).comesBack(as: value) == .text(text))
    }

    @Test(
        "An accessibility is one of Apple's names, and nothing else",
        arguments: [
            Refused("bogus"), Refused(""), Refused("AK"), Refused(6), Refused(true), Refused(bytes), Refused(identifier), Refused(NSNull()),
        ])
    private func accessibilityRefuses(refused: Refused) {
        #expect(add(Item.generic().with(kSecAttrAccessible, refused.value)).status == errSecParam)
        #expect(find(Item.genericQuery().with(kSecAttrAccessible, refused.value)).status == errSecParam)
    }

    @Test(
        "Whether an item is synchronizable may be a Boolean, a number or a number in text",
        arguments: [
            Coercion(true, .number(1)), Coercion(false, .number(0)), Coercion(1, .number(1)), Coercion(0, .number(0)),
            Coercion("1", .number(1)), Coercion("0", .number(0)), Coercion(NSNumber(value: true), .number(1)),
        ])
    private func synchronizable(coercion: Coercion) throws {
        #expect(try Column(.generic, kSecAttrSynchronizable).comesBack(as: coercion.value) == coercion.result)
    }

    @Test(
        "Dates are dates, and nothing else", arguments: Column.of(both: [kSecAttrCreationDate, kSecAttrModificationDate]),
        [Refused("2020-01-01"), Refused(5), Refused(true), Refused(bytes), Refused(NSNull())])
    private func dateRefuses(column: Column, refused: Refused) {
        #expect(add(column.kind.item.with(column.key, refused.value)).status == errSecParam)
        #expect(find(column.kind.query.with(column.key, refused.value)).status == errSecParam)
    }

    @Test(
        "A SHA-1 is 20 bytes", arguments: [Refused(Data(count: 19)), Refused(Data(count: 21)), Refused("12345678901234567890"), Refused(1)])
    private func sha1Refuses(refused: Refused) {
        #expect(find(Item.genericQuery().with(PrivateKey.sha1, refused.value)).status == errSecParam)
    }

    @Test(
        "A user is empty or 16 bytes",
        arguments: [
            Coercion(Data(), .data(Data())), Coercion(Data(repeating: 7, count: 16), .data(Data(repeating: 7, count: 16))),
            Coercion(NSNull(), .data(Data())),
            Coercion(
                identifier, .data(Data([0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]))),
        ])
    private func user(coercion: Coercion) throws {
        #expect(try Column(.generic, PrivateKey.user).comesBack(as: coercion.value) == coercion.result)
    }

    @Test("Every other value of a user is rejected", arguments: [Refused(Data(count: 15)), Refused("text"), Refused(1)])
    private func userRefuses(refused: Refused) {
        #expect(find(Item.genericQuery().with(PrivateKey.user, refused.value)).status == errSecParam)
    }
}
