// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// A validated query for the items to migrate: it finds generic passwords and sets no option that a migration sets itself.
struct MigrationQuery {
    /// A search for all items that returns attributes and persistent references, but not values: not every keychain of macOS can return
    /// the values of several items at once.
    private let listing: [String: Any]
    /// The entries of the query that select a keychain of macOS and control prompts.
    ///
    /// The read of each item repeats them.
    private let readingOptions: [String: Any]
    /// The entries that removing an item repeats too.
    private let accessOptions: [String: Any]

    /// Creates a query for the items of a valet.
    init(_ items: QueryTemplate, _ promptOptions: PromptOptions = .unspecified) {
        self.init(checked: items.with(promptOptions.entries).entries)
    }

    /// Validates a query of a caller.
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
        var query = query
        // One authentication for the listing, all reads, and all removals: those in a transaction cannot prompt.
        if query[kSecUseAuthenticationContext as String] == nil {
            let prompt = query.removeValue(forKey: Self.operationPrompt) as? String
            query.merge(PlatformRules.promptEntries(prompt ?? "")) { _, new in new }
        }
        var listing = query
        listing[kSecMatchLimit as String] = query[kSecMatchLimit as String] ?? kSecMatchLimitAll as String
        listing[kSecReturnAttributes as String] = true
        listing[kSecReturnPersistentRef as String] = true
        listing[kSecReturnData as String] = nil
        listing[kSecReturnRef as String] = nil
        self.listing = listing.merging(PlatformRules.failIfUnreadable) { _, new in new }
        let options = [kSecUseDataProtectionKeychain as String, kSecUseAuthenticationContext as String, Self.operationPrompt]
        accessOptions = query.filter { options.contains($0.key) }
        let interaction = kSecUseAuthenticationUI as String
        readingOptions = query.filter { $0.key == interaction || options.contains($0.key) }
    }

    /// The constant for this key is deprecated on Apple platforms: its use would be a warning.
    private static let operationPrompt = "u_OpPrompt"

    /// Reads all items that match, with their values.
    ///
    /// An item that another process removes between the listing and its own read is left out. A migration changes only items in the
    /// result.
    ///
    /// - Throws: ``KeychainError/couldNotAccessKeychain`` if an item is damaged, ``KeychainError/itemNotFound`` if nothing matches, and the
    ///   other errors of a read.
    func readItems() throws(KeychainError) -> [StoredItem] {
        let (status, listed) = SecItemClient.copyAllAttributes(matching: listing)
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
            switch SecItemClient.copyAttributes(matching: query) {
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
