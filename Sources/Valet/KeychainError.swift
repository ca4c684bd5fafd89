// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// The error that a valet throws.
///
/// It has the cases of other versions of Valet. ``ValetFailure/init(_:)`` gives an error its reason and text; the typed calls throw more detail.
public enum KeychainError: Int, LocalizedError, CaseIterable, CustomStringConvertible, Sendable {
    /// The keychain could not be used: it is locked or damaged, its key is missing, or it rejected the call. A value may exist.
    case couldNotAccessKeychain
    /// The user canceled, or authentication failed.
    case userCancelled
    /// There is no value for the key, or text was requested and the stored bytes are not UTF-8.
    case itemNotFound
    /// The program's entitlements do not list the access group of this valet.
    case missingEntitlement
    /// The key is the empty string.
    case emptyKey
    /// The value is empty; nothing was stored.
    case emptyValue

    /// The names of the type and the case.
    public var description: String {
        switch self {
        case .couldNotAccessKeychain: "KeychainError.couldNotAccessKeychain"
        case .userCancelled: "KeychainError.userCancelled"
        case .itemNotFound: "KeychainError.itemNotFound"
        case .missingEntitlement: "KeychainError.missingEntitlement"
        case .emptyKey: "KeychainError.emptyKey"
        case .emptyValue: "KeychainError.emptyValue"
        }
    }

    /// One sentence about the problem and, if there is one, the next step, in English.
    public var errorDescription: String? { ValetFailure(self).errorDescription }

    /// What to do next; nil if there is nothing that holds in general.
    public var recoverySuggestion: String? { ValetFailure(self).recoverySuggestion }
}

extension KeychainError {
    /// Creates the error for a status other than success.
    init(status: OSStatus) {
        switch status {
        case errSecItemNotFound: self = .itemNotFound
        case errSecUserCanceled, errSecAuthFailed: self = .userCancelled
        case errSecMissingEntitlement: self = .missingEntitlement
        default: self = .couldNotAccessKeychain
        }
    }

    /// Creates the error for a status other than success after adding or changing an item.
    ///
    /// A write never prompts the user, so a failed authentication means that the item's protection requires a passcode and none is set.
    /// An item that another process removed during the write is not reported as "not found".
    init(statusOfWriting status: OSStatus) {
        switch status {
        case errSecAuthFailed, errSecItemNotFound: self = .couldNotAccessKeychain
        default: self.init(status: status)
        }
    }
}
