// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

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

    func forAccount(_ account: String, _ asking: AskingOptions = .unsaid) -> [String: Any] {
        var completed = entries
        completed[kSecAttrAccount as String] = account
        for (key, value) in asking.entries { completed[key] = value }
        return completed
    }
}
