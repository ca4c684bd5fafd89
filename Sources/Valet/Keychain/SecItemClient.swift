// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// All calls of this module to Keychain Services.
///
/// Platforms differ in the types that they coerce, so all calls are here and pass dictionaries with `String` keys only.
enum SecItemClient {
    /// Returns `errSecSuccess` if an item matches, `errSecItemNotFound` if none does, or the status of a failed search.
    static func status(ofSearch query: [String: Any]) -> OSStatus {
        LastCall.note(SecItemCopyMatching(query as CFDictionary, nil))
    }

    /// Returns the value of the item that `query`, which requests data, matches.
    ///
    /// Success with nil: the item has no value.
    static func copyData(matching query: [String: Any]) -> (OSStatus, Data?) {
        let (status, result) = copy(matching: query)
        return (status, result.flatMap(data))
    }

    /// Returns the value, if there is one, and the attributes of the item that `query`, which requests both, matches.
    static func copyDataAndAttributes(matching query: [String: Any]) -> (OSStatus, (data: Data?, attributes: [String: Any])?) {
        let (status, result) = copy(matching: query)
        guard var attributes = result as? [String: Any] else { return (status, nil) }
        return (status, (attributes.removeValue(forKey: kSecValueData as String).flatMap(data), attributes))
    }

    /// Returns the bytes of a result; nil if it is no data.
    private static func data(_ result: Any) -> Data? {
        guard let value = result as? NSData else { return nil }
        // `as? Data` is slow on Linux, where Foundation casts byte by byte: 50 ms for a mebibyte. The bytes are valid during the
        // lifetime of `value`.
        return withExtendedLifetime(value) { unsafe Data(bytes: value.bytes, count: value.length) }
    }

    /// Returns the attributes of the item that `query`, which requests attributes, matches.
    static func copyAttributes(matching query: [String: Any]) -> (OSStatus, [String: Any]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [String: Any])
    }

    /// Returns the attributes of all items that `query`, which requests attributes and sets a limit other than one, matches.
    static func copyAllAttributes(matching query: [String: Any]) -> (OSStatus, [[String: Any]]?) {
        let (status, result) = copy(matching: query)
        return (status, result as? [[String: Any]])
    }

    static func add(_ attributes: [String: Any]) -> OSStatus {
        LastCall.note(SecItemAdd(attributes as CFDictionary, nil))
    }

    /// Adds an item and returns its attributes, which `attributes` requests.
    static func addReturningAttributes(_ attributes: [String: Any]) -> (OSStatus, [String: Any]?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = LastCall.note(unsafe SecItemAdd(attributes as CFDictionary, &result))
        return (status, result as? [String: Any])
    }

    static func update(_ query: [String: Any], to attributes: [String: Any]) -> OSStatus {
        LastCall.note(SecItemUpdate(query as CFDictionary, attributes as CFDictionary))
    }

    static func delete(_ query: [String: Any]) -> OSStatus {
        LastCall.note(SecItemDelete(query as CFDictionary))
    }

    /// Returns an access control of the class that requires a passcode, or nil if the system cannot create it.
    static func accessControl(_ flags: SecAccessControlCreateFlags) -> SecAccessControl? {
        SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, flags, nil)
    }

    private static func copy(matching query: [String: Any]) -> (OSStatus, CFTypeRef?) {
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = LastCall.note(unsafe SecItemCopyMatching(query as CFDictionary, &result))
        return (status, result)
    }
}

/// A dictionary for SecItem functions that is created once and completed for each call.
///
/// `@unchecked Sendable`: the compiler cannot verify a dictionary of `Any`. This one is never changed. It contains strings, Booleans, and
/// values from a caller's query, which this module does not change.
struct QueryTemplate: @unchecked Sendable {
    let entries: [String: Any]

    init(_ entries: [String: Any]) {
        self.entries = entries
    }

    func with(_ more: [String: Any]) -> QueryTemplate {
        QueryTemplate(entries.merging(more) { _, new in new })
    }

    /// The entry that selects a keychain of macOS.
    var keychainSelector: [String: Any] {
        entries.filter { $0.key == kSecUseDataProtectionKeychain as String }
    }

    func forAccount(_ account: String, _ promptOptions: PromptOptions = .unspecified) -> [String: Any] {
        var completed = entries
        completed[kSecAttrAccount as String] = account
        for (key, value) in promptOptions.entries { completed[key] = value }
        return completed
    }
}

/// The options of a call for prompting the user.
struct PromptOptions {
    /// The entries for the dictionary of the call.
    let entries: [String: Any]

    /// No options: for items without access control, and for prompts with the keychain's own text.
    static var unspecified: PromptOptions { PromptOptions(entries: [:]) }

    /// No prompt: a call that would need one returns `errSecInteractionNotAllowed`.
    static var never: PromptOptions { PromptOptions(entries: PlatformRules.withoutPromptEntries()) }

    /// One prompt with this text for all calls that use the same options.
    static func once(_ prompt: String) -> PromptOptions { PromptOptions(entries: PlatformRules.promptEntries(prompt)) }
}
