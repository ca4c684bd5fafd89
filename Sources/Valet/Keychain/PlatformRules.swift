// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// All rules that differ between platforms.
enum PlatformRules {
    #if os(macOS)
    /// Returns whether the prefix of an application group is valid: on macOS it is the App ID prefix of the developer.
    static func isApplicationGroupPrefix(_ prefix: String) -> Bool { !prefix.isEmpty }

    /// Returns a query for the same items in the file-based keychain, where macOS 10.14 and earlier stored them.
    ///
    /// Nil for an iCloud valet, whose items were never stored there.
    static func itemsFromPreCatalina(_ items: QueryTemplate, of namespace: KeychainNamespace) -> QueryTemplate? {
        guard !namespace.isSynchronizable else { return nil }
        return items.with([kSecUseDataProtectionKeychain as String: false])
    }
    #else
    /// Returns whether the prefix of an application group is valid: it is always the word `group`.
    static func isApplicationGroupPrefix(_ prefix: String) -> Bool { prefix == "group" }

    /// Returns nil: only macOS has a file-based keychain.
    static func itemsFromPreCatalina(_ items: QueryTemplate, of namespace: KeychainNamespace) -> QueryTemplate? { nil }
    #endif

    // MARK: Searches for several items

    #if canImport(Darwin)
    /// Makes a search for several items fail if one of them cannot be read.
    ///
    /// Empty: Apple's keychain has no such option, and leaves unreadable items out.
    static var failIfUnreadable: [String: Any] { [:] }
    #else
    /// Makes a search for several items fail if one of them cannot be read.
    static var failIfUnreadable: [String: Any] { [kSecMatchFailsIfUnreadable as String: true] }
    #endif

    // MARK: Items with access control

    #if canImport(Darwin)
    /// Whether an item with access control is replaced by removing it and adding a new one.
    ///
    /// Apple's keychain reads an item to update it, and prompts the user for that. Removing and adding do not prompt, but they are two
    /// calls: if the process or the machine stops between them, the key has no value, and the old value was never read and is lost.
    static let overwritesByRemoving = true
    #else
    /// False: an update that sets a new value replaces the item atomically and does not prompt the user.
    static let overwritesByRemoving = false
    #endif

    #if os(tvOS) || os(watchOS)
    // LocalAuthentication lacks the API needed here, and the constants for these keys are deprecated: their use would be a warning.

    /// Makes a call fail instead of prompting the user.
    static func withoutPromptEntries() -> [String: Any] { ["u_AuthUI": "u_AuthUIF"] }

    /// Sets the text of the prompt.
    static func promptEntries(_ prompt: String) -> [String: Any] { prompt.isEmpty ? [:] : ["u_OpPrompt": prompt] }
    #else
    /// Makes a call fail instead of prompting the user.
    static func withoutPromptEntries() -> [String: Any] {
        let context = LAContext()
        context.interactionNotAllowed = true
        return [kSecUseAuthenticationContext as String: context]
    }

    /// Sets the text of the prompt; if it is empty, the keychain chooses the text.
    static func promptEntries(_ prompt: String) -> [String: Any] {
        let context = LAContext()
        if !prompt.isEmpty { context.localizedReason = prompt }
        return [kSecUseAuthenticationContext as String: context]
    }
    #endif
}
