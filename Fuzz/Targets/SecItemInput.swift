// SPDX-License-Identifier: Apache-2.0
internal import Foundation

@testable internal import KeychainCore
@testable internal import SecurityAPI

/// Makes dictionaries from an input: known and unknown keys, each with a value of any kind.
enum SecItemInput {
    static let keys: [String] =
        Attribute.allCases.map(\.name) + [
            kSecClass, kSecAttrAccessControl, "ggrp", "clip", "binn", "bin0", kSecUseDataProtectionKeychain, kSecMatchLimit,
            kSecMatchHostOrSubdomainOfHost, kSecMatchPolicy, kSecMatchIssuers, kSecReturnData, kSecReturnAttributes, kSecReturnRef,
            kSecReturnPersistentRef, kSecValueData, kSecValuePersistentRef, kSecUseAuthenticationUI, kSecUseNoAuthenticationUI,
            kSecUseOperationPrompt, kSecUseAuthenticationContext, "u_Tomb", "u_CallerName", kSecUseUserIndependentKeychain,
        ]

    /// The kinds of value, by the number that begins one.
    enum Kind: UInt8, CaseIterable {
        case string, data, boolean, integer, real, date, uuid, null, none, accessControl, context, word, small, large, number, other, nested
    }

    /// Values that mean something to some key.
    private static let words = [
        "genp", "inet", "cert", "keys", "idnt", "ak", "ck", "dk", "aku", "cku", "dku", "akpu", kSecAttrSynchronizableAny, kSecMatchLimitOne,
        kSecMatchLimitAll, kSecUseAuthenticationUIFail, kSecUseAuthenticationUISkip, "com.apple.token", "0", "-1", "1e3", "",
    ]

    private static let invalidContext: LAContext = {
        let context = LAContext()
        context.invalidate()
        return context
    }()
    private static let context = LAContext()

    static func dictionary(_ reader: inout InputReader, atMost limit: Int) -> [String: Any] {
        var dictionary: [String: Any] = [:]
        var count = 0
        while !reader.isAtEnd, count < limit {
            let number = Int(reader.byte())
            let key = number < keys.count ? keys[number] : reader.text()
            dictionary[key] = value(&reader)
            count += 1
        }
        return dictionary
    }

    private static func value(_ reader: inout InputReader) -> Any {
        switch Kind.allCases[reader.choice(below: Kind.allCases.count)] {
        case .string: reader.flag() ? reader.text() : NSString(string: reader.text())
        case .data: reader.flag() ? Data(reader.bytes()) : NSData(data: Data(reader.bytes()))
        case .boolean: reader.flag()
        case .integer: Int(truncatingIfNeeded: reader.number())
        case .real: Double(bitPattern: reader.number())
        case .date: Date(timeIntervalSinceReferenceDate: Double(bitPattern: reader.number()))
        case .uuid: UUID(uuid: (reader.byte(), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, reader.byte()))
        case .null: NSNull()
        case .none: String?.none as Any
        case .accessControl: accessControl(&reader) as Any
        case .context: reader.flag() ? context : invalidContext
        case .word: words[reader.choice(below: words.count)]
        case .small: Int8(bitPattern: reader.byte())
        case .large: reader.number()
        case .number: reader.flag() ? NSNumber(value: reader.number()) : NSNumber(value: Double(bitPattern: reader.number()))
        case .other: [reader.text()]
        case .nested: AnyHashable(reader.flag() ? AnyHashable(reader.text()) : AnyHashable(Int(reader.byte())))
        }
    }

    private static func accessControl(_ reader: inout InputReader) -> SecAccessControl? {
        let classes = ItemAccessibility.allCases
        let accessibility = classes[reader.choice(below: classes.count)]
        let flags = SecAccessControlCreateFlags(rawValue: CFOptionFlags(reader.byte()) | CFOptionFlags(reader.byte()) << 14)
        // The error is ignored.
        return SecAccessControlCreateWithFlags(nil, accessibility.rawValue, flags, nil)
    }
}
