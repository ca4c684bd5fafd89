// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// What all kinds of valets have in common: values under keys, and typed calls over them.
///
/// Code that takes `some SecretStore` works with every valet, and with a store of its own in a test or a preview.
public protocol SecretStore: Sendable {
    /// Returns whether the keychain can be used now, without prompting the user.
    ///
    /// - Returns: True if it can.
    func canAccessKeychain() -> Bool

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

    /// Reads the bytes stored under a key, and stores what a closure makes of them, atomically across threads and processes.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if one is necessary. If it is empty, the keychain chooses the text.
    ///   - change: A closure that receives the value, nil if there is none, and can change it; nil removes it. It runs again if another
    ///     thread or process has changed the value meanwhile, so only its last run counts, and it must not have other effects.
    /// - Throws: The errors of ``object(forKey:withPrompt:)`` except ``KeychainError/itemNotFound``, and of ``setObject(_:forKey:)``.
    func modifyObject(forKey key: String, withPrompt userPrompt: String, _ change: (inout Data?) -> Void) throws(KeychainError)

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

    /// Removes all values atomically, without prompting the user.
    ///
    /// - Throws: The errors of ``Valet/removeAllObjects()``.
    func removeAllObjects() throws(KeychainError)

    /// The coder for values under keys that have none; ``JSONValetCoder`` by default.
    var coder: any ValetCoder { get }

    /// The store in which ``AsynchronousValet/refresh(_:if:timeoutSeconds:withPrompt:renew:)`` notes, without a prompt, which task renews a value.
    ///
    /// It must be shared by all processes that share this store. The default is this store.
    var renewalStore: any SecretStore { get }
}

extension SecretStore {
    /// ``JSONValetCoder``.
    public var coder: any ValetCoder { JSONValetCoder() }

    /// This store.
    public var renewalStore: any SecretStore { self }

    /// Returns this valet with another coder for values under keys that have none.
    ///
    /// - Parameter coder: The coder. Not used for `String` and `Data`.
    /// - Returns: A store with the same values.
    public func coding(with coder: any ValetCoder) -> CodingStore<Self> { CodingStore(store: self, coder: coder) }

    /// Stores text under a key, as UTF-8.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``setObject(_:forKey:)``.
    public func setString(_ string: String, forKey key: String) throws(KeychainError) {
        try setObject(Data(string.utf8), forKey: key)
    }

    /// Reads the text stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if one is necessary. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: ``KeychainError/itemNotFound`` also if the stored bytes are not UTF-8, and the errors of ``object(forKey:withPrompt:)``.
    public func string(forKey key: String, withPrompt userPrompt: String) throws(KeychainError) -> String {
        guard let string = String(exactUTF8: try object(forKey: key, withPrompt: userPrompt)) else { throw .itemNotFound }
        return string
    }
}

// MARK: Typed calls

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
        let data = try key.encode(value, with: coder)
        let isStored = try ValetFailure.translating { () throws(KeychainError) in
            if onlyIfAbsent { return try addObject(data, forKey: key.name) }
            try setObject(data, forKey: key.name)
            return true
        }
        if !isStored { throw ValetFailure.alreadyExists }
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
        try key.decode(data(for: key, withPrompt: userPrompt), with: coder)
    }

    /// Reads the stored form of the value under a key.
    func data<Value>(for key: ValetKey<Value>, withPrompt userPrompt: String) throws(ValetFailure) -> Data {
        try ValetFailure.translating { () throws(KeychainError) in try object(forKey: key.name, withPrompt: userPrompt) }
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

    /// Changes the value under a key, atomically across threads and processes.
    ///
    /// A counter that several processes increase loses no step, and a reader sees either the old or the new value. If the valet requires a prompt
    /// to read, so does this call.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    ///   - change: A closure that changes the value. It runs again with the newer value if another thread or process has changed it meanwhile, so
    ///     it must not have other effects. If it throws, nothing is changed.
    /// - Returns: The new value.
    /// - Throws: The errors of `change`, and ``ValetFailure`` with the reason ``ValetFailure/Reason/notFound`` if there is no value, and the other
    ///   reasons of ``value(for:withPrompt:)`` and ``set(_:for:onlyIfAbsent:)``.
    @discardableResult
    public func update<Value>(
        _ key: ValetKey<Value>, withPrompt userPrompt: String = "", _ change: (inout Value) throws -> Void
    ) throws -> Value {
        let coder = coder
        var outcome = Result<Value, any Error>.failure(ValetFailure.notFound)
        try ValetFailure.translating { () throws(KeychainError) in
            try modifyObject(forKey: key.name, withPrompt: userPrompt) { object in
                guard let stored = object else {
                    outcome = .failure(ValetFailure.notFound)
                    return
                }
                outcome = Result {
                    var value = try key.decode(stored, with: coder)
                    try change(&value)
                    object = try key.encode(value, with: coder)
                    return value
                }
            }
        }
        return try outcome.get()
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
