// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension AddRequest {
    /// The item that the dictionary of `SecItemAdd` describes.
    init(_ dictionary: ItemDictionary) throws(KeychainFailure) {
        guard !dictionary.hasMatchKeys else { throw KeychainFailure(.parameter, "a kSecMatch key has no meaning when an item is added") }
        guard !dictionary.skipsItemsThatAsk else {
            throw KeychainFailure(.parameter, "kSecUseAuthenticationUISkip is for searches only")
        }
        if case .legacy? = dictionary.reference {
            throw KeychainFailure(.parameter, "an item cannot be added with a persistent reference of the older form")
        }
        guard dictionary.tombstone != true else { throw KeychainFailure(.parameter, "a tombstone cannot be added") }
        if dictionary.synchronizable == .yes {
            try ProtectionRules.checkSynchronizable(dictionary.accessibility, dictionary.accessControl)
        }
        self.init(
            itemClass: dictionary.itemClass, attributes: dictionary.attributes, secret: dictionary.secret,
            accessControl: ProtectionRules.protection(dictionary.accessibility, dictionary.accessControl),
            authentication: dictionary.authentication)
        // These are the keychain's to set, and it sets them anew for every item.
        for attribute in [Attribute.creationDate, .modificationDate, .sha1] { attributes[attribute] = nil }
        attributes[.synchronizable] = .number(dictionary.synchronizable == .yes ? 1 : 0)
    }
}
