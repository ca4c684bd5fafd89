// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainServices

/// The asynchronous forms of the calls of a valet.
///
///     let password = try await valet.asynchronously.string(forKey: "database")
///
/// The calls wait for the disk, for another process that writes, or for a person at a prompt, on threads for blocking calls. They block neither
/// the main actor nor other tasks. Task-local values and the priority of the caller hold in the call. Results and errors are those of the synchronous
/// calls; if the task is canceled, the wait ends with a `CancellationError`, and a call that has begun completes nevertheless.
///
/// At most 64 calls run at the same time, and others wait, the most urgent first. A prompt is such a call until it is answered or times out. The
/// calls of ``Valet`` never wait for those of valets that prompt, which are counted separately.
public struct AsynchronousValet<Store: SecretStore>: Sendable {
    let store: Store

    /// Runs several synchronous calls, or one that has no asynchronous form, on a thread for blocking calls.
    ///
    ///     try await valet.asynchronously.run { try $0.migrateObjects(from: old, removeOnCompletion: true) }
    ///
    /// - Parameter calls: A closure that receives the valet.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws, or `CancellationError`.
    nonisolated(nonsending) public func run<Result>(
        _ calls: @escaping @Sendable (Store) throws -> sending Result
    ) async throws -> sending Result {
        let store = store
        return try await withBlockingCalls(mayPrompt: Self.mayPrompt) { try calls(store) }
    }

    /// False for valets that never wait for a person.
    private static var mayPrompt: Bool { Store.self != Valet.self && Store.self != CodingStore<Valet>.self }
}

extension SecretStore {
    /// The asynchronous forms of the calls of this valet.
    public var asynchronously: AsynchronousValet<Self> { AsynchronousValet(store: self) }
}

// MARK: Bytes and text

extension AsynchronousValet {
    /// Returns whether the keychain can be used now, without prompting the user.
    ///
    /// - Returns: True if it can.
    /// - Throws: `CancellationError`.
    nonisolated(nonsending) public func canAccessKeychain() async throws -> Bool {
        try await run { $0.canAccessKeychain() }
    }

    /// Stores bytes under a key, and replaces an existing value atomically.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``SecretStore/setObject(_:forKey:)``, or `CancellationError`.
    nonisolated(nonsending) public func setObject(_ object: Data, forKey key: String) async throws {
        try await run { try $0.setObject(object, forKey: key) }
    }

    /// Stores bytes under a key that has no value yet.
    ///
    /// - Parameters:
    ///   - object: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Returns: False if there is a value already, which remains.
    /// - Throws: The errors of ``SecretStore/addObject(_:forKey:)``, or `CancellationError`.
    nonisolated(nonsending) public func addObject(_ object: Data, forKey key: String) async throws -> Bool {
        try await run { try $0.addObject(object, forKey: key) }
    }

    /// Reads the bytes stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: The errors of ``SecretStore/object(forKey:withPrompt:)``, or `CancellationError`.
    nonisolated(nonsending) public func object(forKey key: String, withPrompt userPrompt: String = "") async throws -> Data {
        try await run { try $0.object(forKey: key, withPrompt: userPrompt) }
    }

    /// Reads the bytes stored under a key, and stores what a closure makes of them, atomically across threads and processes.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    ///   - change: A closure that changes the value, or removes it by setting nil; it may run several times.
    /// - Throws: The errors of ``SecretStore/modifyObject(forKey:withPrompt:_:)``, or `CancellationError`.
    nonisolated(nonsending) public func modifyObject(
        forKey key: String, withPrompt userPrompt: String = "", _ change: @escaping @Sendable (inout Data?) -> Void
    ) async throws {
        try await run { try $0.modifyObject(forKey: key, withPrompt: userPrompt, change) }
    }

    /// Returns whether there is a value under a key, without prompting the user.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Returns: True if there is a value; false if the lookup succeeded and found none.
    /// - Throws: The errors of ``SecretStore/containsObject(forKey:)``, or `CancellationError`.
    nonisolated(nonsending) public func containsObject(forKey key: String) async throws -> Bool {
        try await run { try $0.containsObject(forKey: key) }
    }

    /// Stores text under a key, as UTF-8.
    ///
    /// - Parameters:
    ///   - string: The value. It must not be empty.
    ///   - key: The key. It must not be empty.
    /// - Throws: The errors of ``SecretStore/setObject(_:forKey:)``, or `CancellationError`.
    nonisolated(nonsending) public func setString(_ string: String, forKey key: String) async throws {
        try await run { try $0.setString(string, forKey: key) }
    }

    /// Reads the text stored under a key.
    ///
    /// - Parameters:
    ///   - key: The key. It must not be empty.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: The errors of ``SecretStore/string(forKey:withPrompt:)``, or `CancellationError`.
    nonisolated(nonsending) public func string(forKey key: String, withPrompt userPrompt: String = "") async throws -> String {
        try await run { try $0.string(forKey: key, withPrompt: userPrompt) }
    }

    /// Removes the value under a key, without prompting the user.
    ///
    /// - Parameter key: The key. It must not be empty.
    /// - Throws: The errors of ``SecretStore/removeObject(forKey:)``, or `CancellationError`.
    nonisolated(nonsending) public func removeObject(forKey key: String) async throws {
        try await run { try $0.removeObject(forKey: key) }
    }

    /// Removes all values atomically, without prompting the user.
    ///
    /// - Throws: The errors of ``SecretStore/removeAllObjects()``, or `CancellationError`.
    nonisolated(nonsending) public func removeAllObjects() async throws {
        try await run { try $0.removeAllObjects() }
    }
}

extension AsynchronousValet where Store == Valet {
    /// Returns the keys of all values.
    ///
    /// - Returns: The keys; empty if there are none.
    /// - Throws: The errors of ``Valet/allKeys()``, or `CancellationError`.
    nonisolated(nonsending) public func allKeys() async throws -> Set<String> {
        try await run { try $0.allKeys() }
    }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension AsynchronousValet where Store == SinglePromptSecureEnclaveValet {
    /// Returns the keys of all values, after prompting the user if the valet has not been unlocked yet.
    ///
    /// - Parameter userPrompt: The reason that the prompt shows. If it is empty, the keychain chooses the text.
    /// - Returns: The keys; empty if there are none.
    /// - Throws: The errors of ``SinglePromptSecureEnclaveValet/allKeys(userPrompt:)``, or `CancellationError`.
    nonisolated(nonsending) public func allKeys(userPrompt: String = "") async throws -> Set<String> {
        try await run { try $0.allKeys(userPrompt: userPrompt) }
    }
}

// MARK: Typed keys

extension AsynchronousValet {
    /// Stores a value under a key.
    ///
    /// - Parameters:
    ///   - value: The value. Text and data must not be empty.
    ///   - key: The key.
    ///   - onlyIfAbsent: Whether an existing value remains.
    /// - Throws: The errors of ``SecretStore/set(_:for:onlyIfAbsent:)``, or `CancellationError`.
    nonisolated(nonsending) public func set<Value>(_ value: Value, for key: ValetKey<Value>, onlyIfAbsent: Bool = false) async throws {
        try await run { try $0.set(value, for: key, onlyIfAbsent: onlyIfAbsent) }
    }

    /// Reads the value under a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value.
    /// - Throws: The errors of ``SecretStore/value(for:withPrompt:)``, or `CancellationError`.
    nonisolated(nonsending) public func value<Value>(for key: ValetKey<Value>, withPrompt userPrompt: String = "") async throws -> Value {
        try await run { try $0.value(for: key, withPrompt: userPrompt) }
    }

    /// Reads the value under a key, if there is one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    /// - Returns: The value; nil only if it is certain that there is none.
    /// - Throws: The errors of ``SecretStore/valueIfPresent(for:withPrompt:)``, or `CancellationError`.
    nonisolated(nonsending) public func valueIfPresent<Value>(
        for key: ValetKey<Value>, withPrompt userPrompt: String = ""
    ) async throws -> Value? {
        try await run { try $0.valueIfPresent(for: key, withPrompt: userPrompt) }
    }

    /// Changes the value under a key, atomically across threads and processes.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. If it is empty, the keychain chooses the text.
    ///   - change: A closure that changes the value; it may run several times.
    /// - Returns: The new value.
    /// - Throws: The errors of ``SecretStore/update(_:withPrompt:_:)``, or `CancellationError`.
    @discardableResult
    nonisolated(nonsending) public func update<Value>(
        _ key: ValetKey<Value>, withPrompt userPrompt: String = "", _ change: @escaping @Sendable (inout Value) throws -> Void
    ) async throws -> Value {
        try await run { try $0.update(key, withPrompt: userPrompt, change) }
    }

    /// Returns whether there is a value under a key, without prompting the user and without decoding it.
    ///
    /// - Parameter key: The key.
    /// - Returns: True if there is a value; false if it is certain that there is none.
    /// - Throws: The errors of ``SecretStore/containsValue(for:)``, or `CancellationError`.
    nonisolated(nonsending) public func containsValue<Value>(for key: ValetKey<Value>) async throws -> Bool {
        try await run { try $0.containsValue(for: key) }
    }

    /// Removes the value under a key, without prompting the user.
    ///
    /// - Parameter key: The key.
    /// - Throws: The errors of ``SecretStore/removeValue(for:)``, or `CancellationError`.
    nonisolated(nonsending) public func removeValue<Value>(for key: ValetKey<Value>) async throws {
        try await run { try $0.removeValue(for: key) }
    }
}
