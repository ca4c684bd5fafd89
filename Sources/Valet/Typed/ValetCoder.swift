// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// Encodes values to the bytes that a valet stores, and decodes them.
///
/// Two conforming types that store values under the same keys must have the same format.
public protocol ValetCoder: Sendable {
    /// Encodes a value.
    ///
    /// - Parameter value: The value.
    /// - Returns: The bytes. They must not be empty.
    /// - Throws: `EncodingError`, or another error if the value cannot be encoded.
    func encode<Value: Encodable>(_ value: Value) throws -> Data

    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The bytes that ``encode(_:)`` has returned, perhaps in another version of the program.
    /// - Returns: The value.
    /// - Throws: `DecodingError`, or another error if the bytes are not such a value.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

/// JSON with sorted keys, so that equal values have equal bytes.
///
/// Dates and data have Foundation's default form.
///
/// Source: RFC 8259.
public struct JSONValetCoder: ValetCoder {
    /// Creates the coder.
    public init() {}

    /// Encodes a value as JSON.
    ///
    /// - Parameter value: The value.
    /// - Returns: The JSON text in UTF-8.
    /// - Throws: `EncodingError`.
    public func encode<Value: Encodable>(_ value: Value) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(value)
    }

    /// Decodes a value from JSON.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The JSON text in UTF-8.
    /// - Returns: The value.
    /// - Throws: `DecodingError`.
    public func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }
}

/// A valet with another coder for its typed calls; see ``SecretStore/coding(with:)``.
public struct CodingStore<Store: SecretStore>: SecretStore {
    let store: Store
    /// The coder for values under keys that have none.
    public let coder: any ValetCoder

    /// The store of the valet itself.
    public var renewalStore: any SecretStore { store.renewalStore }

    /// Returns whether the valet can be used now.
    ///
    /// - Returns: True if it can.
    public func canAccessKeychain() -> Bool { store.canAccessKeychain() }

    /// Stores bytes as the valet does.
    ///
    /// - Parameters:
    ///   - object: The value.
    ///   - key: The key.
    /// - Throws: The errors of ``SecretStore/setObject(_:forKey:)``.
    public func setObject(_ object: Data, forKey key: String) throws(KeychainError) { try store.setObject(object, forKey: key) }

    /// Stores bytes as the valet does, if there are none yet.
    ///
    /// - Parameters:
    ///   - object: The value.
    ///   - key: The key.
    /// - Returns: False if there is a value already.
    /// - Throws: The errors of ``SecretStore/addObject(_:forKey:)``.
    public func addObject(_ object: Data, forKey key: String) throws(KeychainError) -> Bool { try store.addObject(object, forKey: key) }

    /// Reads bytes as the valet does.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows.
    /// - Returns: The value.
    /// - Throws: The errors of ``SecretStore/object(forKey:withPrompt:)``.
    public func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data {
        try store.object(forKey: key, withPrompt: userPrompt)
    }

    /// Changes bytes as the valet does.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows.
    ///   - change: The change.
    /// - Throws: The errors of ``SecretStore/modifyObject(forKey:withPrompt:_:)``.
    public func modifyObject(forKey key: String, withPrompt userPrompt: String, _ change: (inout Data?) -> Void) throws(KeychainError) {
        try store.modifyObject(forKey: key, withPrompt: userPrompt, change)
    }

    /// Returns whether there is a value under a key.
    ///
    /// - Parameter key: The key.
    /// - Returns: True if there is a value.
    /// - Throws: The errors of ``SecretStore/containsObject(forKey:)``.
    public func containsObject(forKey key: String) throws(KeychainError) -> Bool { try store.containsObject(forKey: key) }

    /// Removes the value under a key.
    ///
    /// - Parameter key: The key.
    /// - Throws: The errors of ``SecretStore/removeObject(forKey:)``.
    public func removeObject(forKey key: String) throws(KeychainError) { try store.removeObject(forKey: key) }

    /// Removes all values.
    ///
    /// - Throws: The errors of ``SecretStore/removeAllObjects()``.
    public func removeAllObjects() throws(KeychainError) { try store.removeAllObjects() }
}
