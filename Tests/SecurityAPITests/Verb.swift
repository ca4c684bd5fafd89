// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore

@testable import SecurityAPI

/// The four verbs, each with the dictionary that says which items.
enum Verb: CaseIterable {
    case add
    case copyMatching
    case update
    case delete

    /// Calls the verb in a keychain that grants everything; returns the status and what the keychain was asked.
    func call(_ dictionary: [String: Any], changes: [String: Any] = [:]) -> (OSStatus, RecordingKeychain.Requests) {
        let keychain = RecordingKeychain()
        let status = CurrentKeychain.with(keychain) {
            switch self {
            case .add: SecItemAdd(dictionary, nil)
            case .copyMatching: SecItemCopyMatching(dictionary, nil)
            case .update: SecItemUpdate(dictionary, changes)
            case .delete: SecItemDelete(dictionary)
            }
        }
        return (status, keychain.requests)
    }

    /// The status alone.
    ///
    /// A refused call never reaches the keychain; an accepted one reaches it once.
    func status(_ dictionary: [String: Any]) -> OSStatus {
        let (status, requests) = call(dictionary)
        let count = requests.added.count + requests.matched.count + requests.updated.count + requests.deleted.count
        return count == (status == errSecSuccess ? 1 : 0) ? status : errSecInternalComponent
    }
}

/// A dictionary for a generic password.
func genericPassword(_ others: [String: Any] = [:]) -> [String: Any] {
    others.merging([kSecClass: kSecClassGenericPassword]) { given, _ in given }
}

/// A dictionary for an internet password.
func internetPassword(_ others: [String: Any] = [:]) -> [String: Any] {
    others.merging([kSecClass: kSecClassInternetPassword]) { given, _ in given }
}
