// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Which items to migrate: a query known to find generic passwords, and to ask for nothing a migration decides itself.
struct MigrationQuery {
    /// Finds all items, with attributes and persistent references and without their values: asking for the values of
    /// several items at once is not possible in every keychain of macOS.
    private let listing: [String: Any]
    /// What a caller said about how to reach the items: in which of the keychains of macOS they are, and how somebody may be asked.
    ///
    /// It must be repeated when one of them is read.
    private let readingOptions: [String: Any]
    /// The part of it that goes for removing one too.
    private let accessOptions: [String: Any]

    /// The items of a valet.
    init(_ items: ItemQuery, _ asking: PromptOptions = .unspecified) {
        self.init(checked: items.with(asking.entries).entries)
    }

    /// A query from outside.
    init(_ query: [String: AnyHashable]) throws(MigrationError) {
        func flag(_ key: CFString) -> Bool? { query[key as String] as? Bool }
        let limit = query[kSecMatchLimit as String]
        guard !query.isEmpty,
            limit != AnyHashable(kSecMatchLimitOne as String), limit as? Int != 1,
            flag(kSecReturnData) != true,
            flag(kSecReturnAttributes) != false,
            flag(kSecReturnRef) != true,
            flag(kSecReturnPersistentRef) != false,
            query[kSecClass as String] as? String == kSecClassGenericPassword as String,
            query[kSecAttrAccessControl as String] == nil
        else { throw .invalidQuery }
        self.init(checked: query.mapValues(\.base))
    }

    private init(checked query: [String: Any]) {
        var listing = query
        listing[kSecMatchLimit as String] = query[kSecMatchLimit as String] ?? kSecMatchLimitAll as String
        listing[kSecReturnAttributes as String] = true
        listing[kSecReturnPersistentRef as String] = true
        listing[kSecReturnData as String] = nil
        listing[kSecReturnRef as String] = nil
        self.listing = listing.merging(PlatformRules.failIfUnreadable) { _, new in new }
        // The constant for the words is deprecated on Apple platforms: naming it would be a warning.
        let options = [kSecUseDataProtectionKeychain as String, kSecUseAuthenticationContext as String, "u_OpPrompt"]
        accessOptions = query.filter { options.contains($0.key) }
        let interaction = kSecUseAuthenticationUI as String
        readingOptions = query.filter { $0.key == interaction || options.contains($0.key) }
    }

    /// Reads all items that match, with their values.
    ///
    /// An item that another process removes between the listing and its own read is left out. A migration changes only items in the
    /// result.
    ///
    /// - Throws: ``KeychainError/couldNotAccessKeychain`` if an item is damaged, ``KeychainError/itemNotFound`` if nothing matches, and the
    ///   other errors of a read.
    func readItems() throws(KeychainError) -> [StoredItem] {
        let (status, listed) = SecItem.copyAllAttributes(matching: listing)
        guard status == errSecSuccess else { throw KeychainError(status: status) }
        guard let listed else { throw .couldNotAccessKeychain }
        var items: [StoredItem] = []
        for attributes in listed {
            guard let reference = attributes[kSecValuePersistentRef as String] as? Data else { throw .couldNotAccessKeychain }
            var query = readingOptions
            query[kSecClass as String] = kSecClassGenericPassword as String
            query[kSecValuePersistentRef as String] = reference
            query[kSecMatchLimit as String] = kSecMatchLimitOne as String
            query[kSecReturnAttributes as String] = true
            query[kSecReturnData as String] = true
            // Attributes and value are read in one call, so they are of the same version of the item.
            switch SecItem.copyAttributes(matching: query) {
            case (errSecSuccess, let attributes?):
                let value = attributes[kSecValueData as String] as? Data
                items.append(StoredItem(attributes: attributes, value: value, accessOptions: accessOptions))
            case (errSecSuccess, nil): throw .couldNotAccessKeychain
            case (errSecItemNotFound, _): continue
            case (let status, _): throw KeychainError(status: status)
            }
        }
        guard !items.isEmpty else { throw .itemNotFound }
        return items
    }
}
