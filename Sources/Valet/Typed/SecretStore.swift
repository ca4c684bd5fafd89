// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// What all kinds of valets have in common: values under keys, and typed calls over them.
///
/// Code that takes `some SecretStore` works with every valet, and with a store of its own in a test or a preview.
public protocol SecretStore: Sendable {
    /// Stores bytes under a key, and replaces an existing value atomically.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``Valet/setObject(_:forKey:)``.
    func setObject(_ object: Data, forKey key: String) throws(KeychainError)

    /// Stores bytes under a key that has no value yet.
    ///
    /// Of several threads or processes that store under one key at the same time, exactly one succeeds.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Returns: False if there is a value already, which remains.
    /// - Throws: The errors of ``Valet/setObject(_:forKey:)``.
    func addObject(_ object: Data, forKey key: String) throws(KeychainError) -> Bool

    /// Reads the bytes stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if one is necessary. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: The errors of ``Valet/object(forKey:)`` or ``SecureEnclaveValet/object(forKey:withPrompt:)``.
    func object(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> Data

    /// Returns whether there is a value under a key, without prompting the user.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: True if there is a value; false if the lookup succeeded and found none.
    /// - Throws: The errors of ``Valet/containsObject(forKey:)``.
    func containsObject(forKey key: String) throws(KeychainError) -> Bool

    /// Removes the value under a key, without prompting the user.
    ///
    /// Does nothing if there is none.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: The errors of ``Valet/removeObject(forKey:)``.
    func removeObject(forKey key: String) throws(KeychainError)
}

extension SecretStore {
    /// Stores a value under a key.
    ///
    /// Replaces an existing value atomically, and does not prompt the user.
    ///
    /// - Parameters:
    ///   - value: The value. Text and data must not be empty.
    ///   - key: The key.
    ///   - onlyIfAbsent: Whether an existing value remains. Of several threads or processes that store at the same time, exactly one succeeds then.
    /// - Throws: ``ValetFailure`` with the reason ``ValetFailure/Reason/alreadyExists`` if `onlyIfAbsent` is true and there is a value,
    ///   ``ValetFailure/Reason/emptyValue``, ``ValetFailure/Reason/notEncodable(codingPath:)``, or a reason of the keychain. The previous value is
    ///   then still stored, except with the reason ``ValetFailure/Reason/outcomeUnknown``.
    public func set<Value>(_ value: Value, for key: ValetKey<Value>, onlyIfAbsent: Bool = false) throws(ValetFailure) {
        let data = try key.encode(value)
        let isStored = try ValetFailure.translating { () throws(KeychainError) in
            if onlyIfAbsent { return try addObject(data, forKey: key.name) }
            try setObject(data, forKey: key.name)
            return true
        }
        if !isStored { throw ValetFailure(reason: .alreadyExists) }
    }

    /// Reads the value under a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``ValetFailure`` with the reason ``ValetFailure/Reason/notFound``, ``ValetFailure/Reason/notText`` or
    ///   ``ValetFailure/Reason/notDecodable(codingPath:)`` if the stored bytes are not such a value, or a reason of the keychain.
    public func value<Value>(for key: ValetKey<Value>, withPrompt userPrompt: String = "") throws(ValetFailure) -> Value {
        let data = try ValetFailure.translating { () throws(KeychainError) in try object(forKey: key.name, withPrompt: userPrompt) }
        return try key.decode(data)
    }

    /// Reads the value under a key, if there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value; nil only if it is certain that there is none.
    /// - Throws: The errors of ``value(for:withPrompt:)`` except ``ValetFailure/Reason/notFound``.
    public func valueIfPresent<Value>(for key: ValetKey<Value>, withPrompt userPrompt: String = "") throws(ValetFailure) -> Value? {
        do throws(ValetFailure) {
            return try value(for: key, withPrompt: userPrompt)
        } catch {
            guard error.reason == .notFound else { throw error }
            return nil
        }
    }

    /// Returns whether there is a value under a key, without prompting the user and without decoding it.
    ///
    /// - Parameter key: The key.
    /// - Returns: True if there is a value; false if it is certain that there is none.
    /// - Throws: ``ValetFailure`` with ``ValetFailure/Reason/emptyKey`` or a reason of the keychain.
    public func containsValue<Value>(for key: ValetKey<Value>) throws(ValetFailure) -> Bool {
        try ValetFailure.translating { () throws(KeychainError) in try containsObject(forKey: key.name) }
    }

    /// Removes the value under a key, without prompting the user.
    ///
    /// Does nothing if there is none.
    ///
    /// - Parameter key: The key.
    /// - Throws: ``ValetFailure`` with ``ValetFailure/Reason/emptyKey`` or a reason of the keychain. The value is then still stored, except with
    ///   the reason ``ValetFailure/Reason/outcomeUnknown``.
    public func removeValue<Value>(for key: ValetKey<Value>) throws(ValetFailure) {
        try ValetFailure.translating { () throws(KeychainError) in try removeObject(forKey: key.name) }
    }
}
