// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices

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
