// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

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
