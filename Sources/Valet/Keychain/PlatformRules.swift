// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The rules that differ between platforms, all of them.
enum PlatformRules {
    #if os(macOS)
    /// The prefix of an application group is the App ID prefix of the maker on macOS.
    static func isApplicationGroupPrefix(_ prefix: String) -> Bool { !prefix.isEmpty }

    /// Where the items of `items` lie if they were written on macOS 10.14 or earlier: in the file-based keychain.
    ///
    /// Nil for an iCloud valet: its items never lay there.
    static func itemsFromPreCatalina(_ items: ItemQuery, of sandbox: Sandbox) -> ItemQuery? {
        guard !sandbox.isSynchronizable else { return nil }
        return items.with([kSecUseDataProtectionKeychain as String: false])
    }
    #else
    /// The prefix of an application group is always the word `group`.
    static func isApplicationGroupPrefix(_ prefix: String) -> Bool { prefix == "group" }

    /// Nil: no other platform ever had a second keychain.
    static func itemsFromPreCatalina(_ items: ItemQuery, of sandbox: Sandbox) -> ItemQuery? { nil }
    #endif

    // MARK: Migrating

    #if canImport(Darwin)
    /// Makes a search for several items fail if one of them cannot be read.
    ///
    /// Empty: Apple's keychain has no such option, and leaves unreadable items out.
    static var failIfUnreadable: [String: Any] { [:] }
    #else
    /// Makes a search for several items fail if one of them cannot be read.
    static var failIfUnreadable: [String: Any] { [kSecMatchFailsIfUnreadable as String: true] }
    #endif

    // MARK: Listing

    #if canImport(Darwin)
    /// The accounts of all items that match `query`, which asks for no results; those that are no strings are left out.
    ///
    /// Success with nil: what was delivered is not what was asked for.
    static func accounts(matching query: [String: Any]) -> (OSStatus, [String]?) {
        let listing: [String: Any] = [kSecMatchLimit as String: kSecMatchLimitAll as String, kSecReturnAttributes as String: true]
        let (status, found) = SecItem.copyAllAttributes(matching: query.merging(listing) { _, new in new })
        return (status, found?.compactMap { $0[kSecAttrAccount as String] as? String })
    }
    #else
    /// The accounts of all items that match `query`, which asks for no results; those that are no strings are left out.
    static func accounts(matching query: [String: Any]) -> (OSStatus, [String]?) {
        AccountListing.accounts(matching: query)
    }
    #endif

    // MARK: Items that a person has to release

    #if canImport(Darwin)
    /// Whether an item that is there, and that an update may not touch without asking, is removed to be added anew.
    ///
    /// Apple's keychain reads an item to update it, and asks for that. Removing and adding ask nobody, but they are two calls: if the
    /// process or the machine stops between them, the key is left without a value, and the old one cannot be put back because nobody
    /// has read it.
    static let overwritesByRemoving = true
    #else
    /// False: an update that names the item and brings a new value writes the item anew, at one stroke, and asks nobody.
    static let overwritesByRemoving = false
    #endif

    #if os(tvOS) || os(watchOS)
    // LocalAuthentication lacks what is needed here, and the constants for these keys are deprecated: naming them would be a warning.

    /// Makes a call fail rather than ask.
    static func withoutPromptEntries() -> [String: Any] { ["u_AuthUI": "u_AuthUIF"] }

    /// Makes a call ask in the program's words.
    static func asking(_ prompt: String) -> [String: Any] { prompt.isEmpty ? [:] : ["u_OpPrompt": prompt] }

    /// True: nobody can be asked about it.
    static func hasBiometry() -> Bool { true }
    #else
    /// Makes a call fail rather than ask.
    static func withoutPromptEntries() -> [String: Any] {
        let context = LAContext()
        context.interactionNotAllowed = true
        return [kSecUseAuthenticationContext as String: context]
    }

    /// Makes a call ask in the program's words; the empty text leaves the words to the keychain.
    static func asking(_ prompt: String) -> [String: Any] {
        let context = LAContext()
        if !prompt.isEmpty { context.localizedReason = prompt }
        return [kSecUseAuthenticationContext as String: context]
    }

    /// Whether a finger or a face can release an item now.
    static func hasBiometry() -> Bool {
        // No pointer is given.
        unsafe LAContext().canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
    }
    #endif
}
