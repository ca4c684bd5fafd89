// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices

/// The status and the result of a call.
struct Answer {
    let status: OSStatus
    let result: CFTypeRef?

    var data: Data? { result as? Data }
    var attributes: ItemDictionary? { result as? ItemDictionary }
    var array: [Any]? { result as? [Any] }
    var dataArray: [Data]? { result as? [Data] }
    var attributesArray: [ItemDictionary]? { result as? [ItemDictionary] }
}

// The pointer that each call gets is to a variable of the caller and used only during the call.

@discardableResult
func add(_ attributes: ItemDictionary) -> Answer {
    var result: CFTypeRef?
    let status = unsafe SecItemAdd(attributes as CFDictionary, &result)
    return Answer(status: status, result: result)
}

func find(_ query: ItemDictionary) -> Answer {
    var result: CFTypeRef?
    let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
    return Answer(status: status, result: result)
}

func update(_ query: ItemDictionary, _ attributesToUpdate: ItemDictionary) -> OSStatus {
    SecItemUpdate(query as CFDictionary, attributesToUpdate as CFDictionary)
}

func delete(_ query: ItemDictionary) -> OSStatus {
    SecItemDelete(query as CFDictionary)
}

/// The attributes of the one item that matches.
func attributes(of query: ItemDictionary) -> ItemDictionary? {
    find(query.with(kSecReturnAttributes, true)).attributes
}

/// The secret of the one item that matches.
func secret(of query: ItemDictionary) -> Data? {
    find(query.with(kSecReturnData, true)).data
}

/// The number of items that match.
func count(of query: ItemDictionary) -> Int {
    find(query.with([kSecReturnPersistentRef: true, kSecMatchLimit: kSecMatchLimitAll])).dataArray?.count ?? 0
}

/// One of the four calls, so that a table can be run through each.
enum Verb: CaseIterable, Sendable {
    case add
    case find
    case update
    case delete

    /// Returns the status of the call with a dictionary: the attributes to add, or the query.
    func status(_ dictionary: ItemDictionary) -> OSStatus {
        switch self {
        case .add: ConformanceTests.add(dictionary).status
        case .find: ConformanceTests.find(dictionary).status
        case .update: ConformanceTests.update(dictionary, [kSecAttrComment: "changed"])
        case .delete: ConformanceTests.delete(dictionary)
        }
    }
}

/// Dictionaries that most tests begin with.
enum Item {
    static let secret = Data("secret".utf8)

    static func generic(_ account: String = "account", service: String = "service") -> ItemDictionary {
        genericQuery(account, service: service).with(kSecValueData, secret)
    }

    static func genericQuery(_ account: String = "account", service: String = "service") -> ItemDictionary {
        [kSecClass: kSecClassGenericPassword, kSecAttrAccount: account, kSecAttrService: service]
    }

    static func internet(_ account: String = "account", server: String = "example.com", port: Int = 80) -> ItemDictionary {
        internetQuery(account, server: server, port: port).with(kSecValueData, secret)
    }

    static func internetQuery(_ account: String = "account", server: String = "example.com", port: Int = 80) -> ItemDictionary {
        [
            kSecClass: kSecClassInternetPassword, kSecAttrServer: server, kSecAttrAccount: account, kSecAttrPort: port,
            kSecAttrProtocol: "http", kSecAttrAuthenticationType: "dflt",
        ]
    }

    /// The two classes of passwords, for tests that hold for both.
    enum Kind: CaseIterable, Sendable {
        case generic
        case internet

        var item: ItemDictionary { self == .generic ? Item.generic() : Item.internet() }
        var query: ItemDictionary { self == .generic ? Item.genericQuery() : Item.internetQuery() }
        var itemClass: CFString { self == .generic ? kSecClassGenericPassword : kSecClassInternetPassword }
    }
}

/// The type of the dictionaries of the SecItem functions.
typealias ItemDictionary = [CFString: Any]

extension ItemDictionary {
    func with(_ key: CFString, _ value: Any) -> ItemDictionary {
        merging([key: value]) { $1 }
    }

    func with(_ others: ItemDictionary) -> ItemDictionary {
        merging(others) { $1 }
    }

    func without(_ unwanted: CFString...) -> ItemDictionary {
        filter { !unwanted.contains($0.key) }
    }

    /// Whether both have equal entries of the same types.
    func isEqual(to other: ItemDictionary?) -> Bool {
        guard let other else { return false }
        return (self as NSDictionary).isEqual(other as NSDictionary)
    }
}

/// Keys without a public name that Keychain Services accepts.
enum PrivateKey {
    static let tombstone = "tomb" as CFString
    static let useTombstones = "u_Tomb" as CFString
    static let user = "musr" as CFString
    static let sha1 = "sha1" as CFString
    static let uuid = "UUID" as CFString
    static let appClipItem = "clip" as CFString
    static let sharingGroup = "ggrp" as CFString
    static let alias = "alis" as CFString
    static let protected = "prot" as CFString
    static let scriptCode = "scrp" as CFString
    static let hasCustomIcon = "cusi" as CFString
    static let internetNotes = "binn" as CFString
    static let credentialReference = "u_CredRef" as CFString
    static let callerName = "u_CallerName" as CFString
    static let tokenRawItems = "u_TokenRawItems" as CFString
}

/// A typed attribute value for tables and comparisons, in which text never equals data.
enum PlainValue: Hashable, Sendable {
    case text(String)
    case data(Data)
    case number(Int)
    case date(Date)

    /// Nil for a value of any other type.
    init?(_ value: Any?) {
        switch value {
        case let text as String: self = .text(text)
        // Before numbers: with swift-corelibs-foundation data casts to NSNumber too.
        case let data as Data: self = .data(data)
        case let date as Date: self = .date(date)
        case let number as NSNumber: self = .number(number.intValue)
        default: return nil
        }
    }

    /// The value as a dictionary contains it.
    var value: any Sendable {
        switch self {
        case .text(let text): text
        case .data(let data): data
        case .number(let number): number
        case .date(let date): date
        }
    }
}
