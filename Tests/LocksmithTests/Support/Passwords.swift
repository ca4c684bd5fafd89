// SPDX-License-Identifier: Apache-2.0
import Foundation
import Locksmith

/// A generic password of which everything can be set.
struct GenericPassword: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, Sendable
{
    var account = "Skroob"
    var service = "Druidia"
    var secret = "12345"
    var data: [String: Any] { ["secret": secret] }

    var accessible: LocksmithAccessibleOption?
    var accessGroup: String?
    var comment: String?
    var creator: UInt?
    var description: String?
    var generic: Data?
    var isInvisible: Bool?
    var isNegative: Bool?
    var label: String?
    var type: UInt?
}

/// An internet password of which everything can be set.
struct InternetPassword: InternetPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable,
    Sendable
{
    var account = "Skroob"
    var authenticationType = LocksmithInternetAuthenticationType.httpBasic
    var internetProtocol = LocksmithInternetProtocol.https
    var port = 443
    var server = "druidia.example"
    var secret = "12345"
    var data: [String: Any] { ["secret": secret] }

    var accessible: LocksmithAccessibleOption?
    var accessGroup: String?
    var comment: String?
    var creator: UInt?
    var description: String?
    var isInvisible: Bool?
    var isNegative: Bool?
    var path: String?
    var securityDomain: String?
    var type: UInt?
}
