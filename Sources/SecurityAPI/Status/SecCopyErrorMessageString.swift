// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

/// Returns a description of a status for people.
///
/// - Parameters:
///   - status: A status of a Keychain Services function.
///   - reserved: Always nil.
/// - Returns: The description; for an unknown status, the word `OSStatus` and the number.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    for messages in statusMessages {
        if let message = messages[status] { return message }
    }
    return "OSStatus \(status)"
}

/// The descriptions, each one sentence.
let statusMessages = [
    keychainStatusMessages, certificateStatusMessages, moduleStatusMessages, parameterStatusMessages, requestStatusMessages,
    timestampStatusMessages,
]

/// The descriptions of the statuses in errSec.swift.
private let keychainStatusMessages: [OSStatus: String] = [
    errSecSuccess: "The call did what it was asked.",
    errSecUnimplemented: "The keychain has no such function, or not for this item class.",
    errSecDiskFull: "The disk is full.",
    errSecIO: "The disk could not be read or written.",
    errSecOpWr: "The file is already open for writing.",
    errSecParam: "A key, a value or a combination of them in the dictionary is not valid.",
    errSecWrPerm: "The file may not be written.",
    errSecAllocate: "There is not enough memory.",
    errSecUserCanceled: "The user canceled the prompt.",
    errSecBadReq: "The request is not valid in this place or at this time.",
    errSecInternalComponent: "Internal error.",
    errSecCoreFoundationUnknown: "The failure has no specific code.",
    errSecMissingEntitlement: "The program has no entitlement for this access group or attribute.",
    errSecRestrictedAPI: "The program is not allowed to do this.",
    errSecACLNotSimple: "The access list is not in its simple form.",
    errSecPolicyNotFound: "There is no such policy.",
    errSecInvalidTrustSetting: "The trust setting is not valid.",
    errSecNoAccessForItem: "The item has no access control.",
    errSecInvalidOwnerEdit: "The owner of the item cannot be changed this way.",
    errSecTrustNotAvailable: "There are no trust results.",
    errSecUnsupportedFormat: "The format is not supported.",
    errSecUnknownFormat: "The format is not known.",
    errSecKeyIsSensitive: "The key may leave the keychain only in encrypted form.",
    errSecMultiplePrivKeys: "There is more than one private key where one is expected.",
    errSecPassphraseRequired: "A passphrase is needed to import or export.",
    errSecInvalidPasswordRef: "The reference to a password is not valid.",
    errSecInvalidTrustSettings: "The trust settings are damaged.",
    errSecNoTrustSettings: "There are no trust settings.",
    errSecPkcs12VerifyFailure: "The PKCS #12 file could not be verified: the passphrase may be wrong.",
    errSecNotSigner: "The certificate did not sign this.",
    errSecDecode: "The item is damaged, or cannot be decoded.",
    errSecNotAvailable: "The keychain cannot be used: it could not be opened, or its keys are missing.",
    errSecReadOnly: "The keychain can only be read.",
    errSecAuthFailed: "Authentication failed.",
    errSecNoSuchKeychain: "There is no such keychain.",
    errSecInvalidKeychain: "This is not a keychain.",
    errSecDuplicateKeychain: "There is already a keychain of this name.",
    errSecDuplicateCallback: "The callback is already registered.",
    errSecInvalidCallback: "The callback is not valid.",
    errSecDuplicateItem: "There is already an item with this primary key.",
    errSecItemNotFound: "There is no such item.",
    errSecBufferTooSmall: "The buffer is too small.",
    errSecDataTooLarge: "The value is too large.",
    errSecNoSuchAttr: "This item class has no such attribute.",
    errSecInvalidItemRef: "The reference to the item is not valid.",
    errSecInvalidSearchRef: "The search is not valid.",
    errSecNoSuchClass: "There is no such item class, or it is not the class of the persistent reference.",
    errSecNoDefaultKeychain: "There is no default keychain.",
    errSecInteractionNotAllowed: "The item is locked, or a required prompt is forbidden or cannot be shown.",
    errSecReadOnlyAttr: "The attribute can only be read.",
    errSecWrongSecVersion: "The keychain has a format this version does not know.",
    errSecKeySizeNotAllowed: "Keys of this size are not allowed.",
    errSecNoStorageModule: "There is no storage module.",
    errSecNoCertificateModule: "There is no certificate module.",
    errSecNoPolicyModule: "There is no policy module.",
    errSecInteractionRequired: "A prompt is required.",
    errSecDataNotAvailable: "The data of the item is not available.",
    errSecDataNotModifiable: "The data of the item cannot be changed.",
    errSecCreateChainFailed: "No chain of certificates leads to a root.",
    errSecInvalidPrefsDomain: "The preference domain is not valid.",
    errSecInDarkWake: "The device is in a dark wake, so no prompt can be shown.",
    errSecServiceNotAvailable: "The service the keychain needs is not available.",
    errSecQuotaExceeded: "The quota is used up.",
]
