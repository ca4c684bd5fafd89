// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices

/// Keys without a public name that Keychain Services answers to all the same.
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
