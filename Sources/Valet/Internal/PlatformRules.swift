// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The rules that differ between platforms, all of them.
enum PlatformRules {
    #if os(macOS)
    /// The prefix of an application group is the App ID prefix of the maker on macOS.
    static func isGroupPrefix(_ prefix: String) -> Bool { !prefix.isEmpty }

    /// Where the items of `items` lie if they were written on macOS 10.14 or earlier: in the file-based keychain.
    ///
    /// Nil for an iCloud valet: its items never lay there.
    static func itemsFromPreCatalina(_ items: ItemQuery, of sandbox: Sandbox) -> ItemQuery? {
        guard !sandbox.isSynchronizable else { return nil }
        return items.with([kSecUseDataProtectionKeychain as String: false])
    }
    #else
    /// The prefix of an application group is always the word `group`.
    static func isGroupPrefix(_ prefix: String) -> Bool { prefix == "group" }

    /// Nil: no other platform ever had a second keychain.
    static func itemsFromPreCatalina(_ items: ItemQuery, of sandbox: Sandbox) -> ItemQuery? { nil }
    #endif
}
