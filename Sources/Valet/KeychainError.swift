// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// Why a valet could not do what it was asked.
///
/// The exact status and its reason are in the log that the keychain below writes; they are not carried here.
public enum KeychainError: Int, Error, CaseIterable, CustomStringConvertible, Sendable {
    /// The keychain could not be used: it is locked, damaged, missing its key, or refused the call.
    /// It does not mean that there is no value.
    case couldNotAccessKeychain
    /// The person cancelled, or could not show to be the person asked for.
    case userCancelled
    /// There is no value for the key, or the stored bytes are no text and text was asked for.
    case itemNotFound
    /// The program's entitlements do not list the access group of this valet.
    case missingEntitlement
    /// The key is the empty string.
    case emptyKey
    /// The value has no bytes; nothing was stored.
    case emptyValue

    /// The name of the type and of the case.
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
}

extension KeychainError {
    /// What a status other than success means to the caller of a valet.
    init(status: OSStatus) {
        switch status {
        case errSecItemNotFound: self = .itemNotFound
        case errSecUserCanceled, errSecAuthFailed: self = .userCancelled
        case errSecMissingEntitlement: self = .missingEntitlement
        default: self = .couldNotAccessKeychain
        }
    }

    /// What a status other than success means after adding or changing an item.
    ///
    /// Nobody is asked for anything then, so a failed authentication is no refusal by a person: the item's protection
    /// needs a passcode and none is set. And an item that was there a moment ago is not "not found" to the writer.
    init(statusOfWriting status: OSStatus) {
        switch status {
        case errSecAuthFailed, errSecItemNotFound: self = .couldNotAccessKeychain
        default: self.init(status: status)
        }
    }
}
