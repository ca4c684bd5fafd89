// SPDX-License-Identifier: Apache-2.0
package import Foundation

/// What all valets have beyond `SecretStore`, for the command line and the C interface.
///
/// The methods behave as the public ones of the same name. `itemQuery` and `newItem(forKey:value:)` are the dictionaries that the valet
/// passes to Keychain Services, for operations that a valet does not have.
package protocol ValetProtocol: SecretStore, AnyObject, Hashable, CustomStringConvertible {
    /// Whether a person has to authenticate before a value can be read.
    static var requiresAuthentication: Bool { get }

    var identifier: Identifier { get }
    /// The query that matches all items of the valet.
    var itemQuery: [String: Any] { get }
    /// The attributes of a new item. Throws `.emptyKey` or `.emptyValue`.
    func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any]

    func canAccessKeychain() -> Bool
    func removeAllObjects() throws(KeychainError)
    func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws
    func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws
}

/// A valet that lists its keys with at most one authentication.
package protocol ListableValet: ValetProtocol {
    func allKeys(userPrompt: String) throws(KeychainError) -> Set<String>
    /// The keys without Unicode normalization: keys are equal only if their bytes are.
    ///
    /// With `isComplete`, an item that cannot be read is an error.
    func keyList(userPrompt: String, isComplete: Bool) throws(KeychainError) -> KeyList
    /// Runs a search with the query that matches all items of the valet, including the authentication if one is required.
    func withItemQuery<Result, Failure: Error>(
        userPrompt: String, _ search: ([String: Any]) throws(Failure) -> Result
    ) throws(Failure) -> Result
}

extension Valet: ListableValet {
    package static var requiresAuthentication: Bool { false }
    package var itemQuery: [String: Any] { keychain.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.newItem(forKey: key, value: value)
    }

    package func allKeys(userPrompt: String) throws(KeychainError) -> Set<String> {
        try allKeys()
    }

    package func keyList(userPrompt: String, isComplete: Bool) throws(KeychainError) -> KeyList {
        try keyList(isComplete: isComplete)
    }

    package func withItemQuery<Result, Failure: Error>(
        userPrompt: String, _ search: ([String: Any]) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try search(itemQuery)
    }
}

extension SecureEnclaveValet: ValetProtocol {
    package static var requiresAuthentication: Bool { true }
    package var itemQuery: [String: Any] { keychain.values.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.values.newItem(forKey: key, value: value)
    }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet: ListableValet {
    package static var requiresAuthentication: Bool { true }
    package var itemQuery: [String: Any] { keychain.values.items.entries }

    package func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        try keychain.values.newItem(forKey: key, value: value)
    }

    package func withItemQuery<Result, Failure: Error>(
        userPrompt: String, _ search: ([String: Any]) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try singlePrompt.perform(userPrompt) { asking throws(Failure) in
            try search(keychain.values.items.with(asking.entries).entries)
        }
    }
}
