// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// Every call of Keychain Services that this module makes.
///
/// The calls differ between platforms in what they coerce, so they are kept together and take nothing but
/// dictionaries with String keys.
enum SecItem {
    /// Whether something matches: `errSecSuccess`, `errSecItemNotFound`, or why that cannot be said.
    static func look(for query: [String: Any]) -> OSStatus {
        SecItemCopyMatching(query as CFDictionary, nil)
    }

    /// The value of the one item that `query`, which asks for data, matches.
    ///
    /// Success with nil: the item has no value.
    static func copyData(matching query: [String: Any]) -> (OSStatus, Data?) {
        let (status, result) = copy(matching: query)
        guard let value = result as? NSData else { return (status, nil) }
        // `as? Data` would do, but Foundation for Linux casts byte by byte: 50 ms for a mebibyte. The bytes are valid as long
        // as `value` lives.
        return (status, withExtendedLifetime(value) { unsafe Data(bytes: value.bytes, count: value.length) })
    }

    /// The one item that `query`, which asks for attributes, matches.
    static func copyAttributes(matching query: [String: Any]) -> (OSStatus, [String: Any]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [String: Any])
    }

    /// All items that `query`, which asks for attributes and sets a limit other than one, matches.
    static func copyAllAttributes(matching query: [String: Any]) -> (OSStatus, [[String: Any]]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [[String: Any]])
    }

    static func add(_ attributes: [String: Any]) -> OSStatus {
        SecItemAdd(attributes as CFDictionary, nil)
    }

    /// Adds an item; `attributes` asks for the attributes it then has.
    static func addReturningAttributes(_ attributes: [String: Any]) -> (OSStatus, [String: Any]?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemAdd(attributes as CFDictionary, &result)
        return (status, result as? [String: Any])
    }

    static func update(_ query: [String: Any], to attributes: [String: Any]) -> OSStatus {
        SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
    }

    static func delete(_ query: [String: Any]) -> OSStatus {
        SecItemDelete(query as CFDictionary)
    }

    /// The access control of items in the class that needs a passcode; nil if the system makes none.
    static func accessControl(_ flags: SecAccessControlCreateFlags) -> SecAccessControl? {
        SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, flags, nil)
    }

    private static func copy(matching query: [String: Any]) -> (OSStatus, CFTypeRef?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        return (status, result)
    }
}

/// A dictionary for SecItem functions that is made once and completed for each call.
///
/// `@unchecked Sendable`: a dictionary of `Any` cannot show it, but this one never changes, and what is put in are
/// strings, Booleans and what a caller gave as the values of a query; nothing of it is ever changed here.
struct ItemQuery: @unchecked Sendable {
    let entries: [String: Any]

    init(_ entries: [String: Any]) {
        // Room for what a call adds, so that completing the dictionary copies it once and never grows it.
        var roomy = [String: Any](minimumCapacity: entries.count + 4)
        roomy.merge(entries) { _, new in new }
        self.entries = roomy
    }

    func with(_ more: [String: Any]) -> ItemQuery {
        ItemQuery(entries.merging(more) { _, new in new })
    }

    /// Which of the keychains of macOS the query is about.
    var keychainSelector: [String: Any] {
        entries.filter { $0.key == kSecUseDataProtectionKeychain as String }
    }

    func forAccount(_ account: String, _ asking: PromptOptions = .unspecified) -> [String: Any] {
        var completed = entries
        completed[kSecAttrAccount as String] = account
        for (key, value) in asking.entries { completed[key] = value }
        return completed
    }
}

/// What a call says about asking the person who has to release an item.
struct PromptOptions {
    /// What goes into the dictionary of the call.
    let entries: [String: Any]

    /// Says nothing: for items that need nobody, and to be asked in the keychain's own words.
    static var unspecified: PromptOptions { PromptOptions(entries: [:]) }

    /// Nobody is asked: the call answers `errSecInteractionNotAllowed` where somebody would have to be.
    static var never: PromptOptions { PromptOptions(entries: PlatformRules.withoutPromptEntries()) }

    /// The person is asked in these words, and one answer serves every call that is given the same options.
    static func once(_ prompt: String) -> PromptOptions { PromptOptions(entries: PlatformRules.asking(prompt)) }
}
