// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// A generic password that was read.
///
/// `@unchecked Sendable`: dictionaries of `Any` cannot show it, but nothing in these ever changes: the keychain delivers strings, bytes,
/// numbers and dates, the archive is read as such, and a program's own closure gives up what it delivers.
struct GenericPasswordResult: GenericPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    /// What decides which item is found is also known from who asked.
    private let request: Request

    private struct Request {
        let account: String
        let service: String
    }

    init(of password: some GenericPasswordSecureStorable, _ found: FoundItem) {
        resultDictionary = found.attributes
        data = found.data
        request = Request(account: password.account, service: password.service)
    }

    var account: String { text(kSecAttrAccount) ?? request.account }
    var service: String { text(kSecAttrService) ?? request.service }
}

/// An internet password that was read.
///
/// `@unchecked Sendable`: as above.
struct InternetPasswordResult: InternetPasswordSecureStorableResultType, @unchecked Sendable {
    let resultDictionary: [String: Any]
    let data: [String: Any]?
    /// What decides which item is found is also known from who asked.
    private let request: Request

    private struct Request {
        let account: String
        let authenticationType: LocksmithInternetAuthenticationType
        let internetProtocol: LocksmithInternetProtocol
        let port: Int
        let server: String
    }

    init(of password: some InternetPasswordSecureStorable, _ found: FoundItem) {
        resultDictionary = found.attributes
        data = found.data
        request = Request(
            account: password.account, authenticationType: password.authenticationType, internetProtocol: password.internetProtocol,
            port: password.port, server: password.server)
    }

    var account: String { text(kSecAttrAccount) ?? request.account }
    var authenticationType: LocksmithInternetAuthenticationType {
        text(kSecAttrAuthenticationType).flatMap(LocksmithInternetAuthenticationType.init) ?? request.authenticationType
    }
    var internetProtocol: LocksmithInternetProtocol {
        text(kSecAttrProtocol).flatMap(LocksmithInternetProtocol.init) ?? request.internetProtocol
    }
    var port: Int { number(kSecAttrPort) ?? request.port }
    var server: String { text(kSecAttrServer) ?? request.server }
}

/// What a reading request found.
struct FoundItem {
    let attributes: [String: Any]
    /// Nil: the item has no value.
    let data: [String: Any]?
}
