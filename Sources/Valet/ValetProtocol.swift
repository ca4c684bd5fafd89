// SPDX-License-Identifier: Apache-2.0
package import Foundation

// What Keychain Services is given to find a valet's items, and to add one: for the command line, which shows and does more than a
// valet does.

extension Valet {
    package var itemQuery: [String: Any] { keychain.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.newItem(forKey: key, value: value)
    }
}

extension SecureEnclaveValet {
    package var itemQuery: [String: Any] { keychain.values.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.values.newItem(forKey: key, value: value)
    }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    package var itemQuery: [String: Any] { keychain.values.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.values.newItem(forKey: key, value: value)
    }

    /// Runs a search, which is no use of the valet itself, with the one authentication.
    package func withItemQuery<Result, Failure: Error>(
        userPrompt: String, _ search: ([String: Any]) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try singlePrompt.perform(userPrompt) { asking throws(Failure) in
            try search(keychain.values.items.with(asking.entries).entries)
        }
    }
}
