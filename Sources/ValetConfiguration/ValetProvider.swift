// SPDX-License-Identifier: Apache-2.0
#if Configuration
public import Configuration
internal import Foundation
public import Valet

/// Configuration values from the keychain, for swift-configuration.
///
///     let secrets = Valet.valet(with: "server", accessibility: .afterFirstUnlock)
///     let config = ConfigReader(providers: [ValetProvider(secrets), EnvironmentVariablesProvider()])
///     let password = try config.requiredString(forKey: "database.password")
///
/// Each value is marked as secret, so that access reporters and logs do not show it. A keychain that is locked, damaged, or cannot be reached
/// is an error, never an absent value, so that no other provider answers in its place.
///
/// | Type | Stored form |
/// |---|---|
/// | string | text |
/// | int, double | a number as text |
/// | bool | `true`, `yes`, or `1`; `false`, `no`, or `0`; in any case |
/// | bytes | the bytes themselves |
/// | arrays of strings, numbers, and Booleans | a JSON array |
/// | an array of byte chunks | a JSON array of texts in Base64 |
///
/// A `ValetKey` of Valet whose value is one of these types stores it in this form.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public struct ValetProvider: ConfigProvider {
    private let valet: Valet
    private let keyName: @Sendable (AbsoluteConfigKey) -> String

    /// Creates a provider.
    ///
    /// - Parameters:
    ///   - valet: The valet with the values.
    ///   - keyName: Returns the key of the valet for a key of the configuration; ``hyphenated(_:)`` by default.
    public init(_ valet: Valet, keyName: @escaping @Sendable (AbsoluteConfigKey) -> String = ValetProvider.hyphenated) {
        self.valet = valet
        self.keyName = keyName
    }

    /// Joins the parts of a key with hyphens: `database.password` is stored under `database-password`.
    ///
    /// - Parameter key: The key of the configuration. Its context is not used.
    /// - Returns: The key of the valet.
    public static func hyphenated(_ key: AbsoluteConfigKey) -> String { key.components.joined(separator: "-") }

    /// The name of the type and the identifier of the valet.
    public var providerName: String { "ValetProvider[\(valet.identifier)]" }

    /// Reads a value from the keychain.
    ///
    /// Waits for the disk; ``fetchValue(forKey:type:)`` does not block the thread.
    ///
    /// - Parameters:
    ///   - key: The key of the configuration.
    ///   - type: The type of the value.
    /// - Returns: The value; none if it is certain that the valet has none.
    /// - Throws: `ValetFailure` if the keychain cannot be read, or ``UnexpectedValueError`` if the stored value is not of this type.
    public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
        try lookUp(keyName(key), type, in: valet)
    }

    /// Reads a value from the keychain on a thread for blocking calls.
    ///
    /// - Parameters:
    ///   - key: The key of the configuration.
    ///   - type: The type of the value.
    /// - Returns: The value; none if it is certain that the valet has none.
    /// - Throws: The errors of ``value(forKey:type:)``, or `CancellationError`.
    nonisolated(nonsending) public func fetchValue(forKey key: AbsoluteConfigKey, type: ConfigType) async throws -> LookupResult {
        let name = keyName(key)
        return try await valet.asynchronously.run { valet in try lookUp(name, type, in: valet) }
    }

    /// Passes the value and each later one, by any process, to a closure.
    ///
    /// - Parameters:
    ///   - key: The key of the configuration.
    ///   - type: The type of the value.
    ///   - updatesHandler: A closure that receives the values. Errors are elements, so the sequence goes on when the keychain is unlocked.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    nonisolated(nonsending) public func watchValue<Return: ~Copyable>(
        forKey key: AbsoluteConfigKey, type: ConfigType,
        updatesHandler:
            nonisolated(nonsending) (
                _ updates: ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>
            ) async throws -> Return
    ) async throws -> Return {
        let name = keyName(key)
        let updates = Updates(valet: valet) { valet in
            Result { try lookUp(name, type, in: valet) }
        } isEqual: {
            $0.isEqual(to: $1)
        }
        return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }

    /// Reads all values of the valet at the same moment.
    ///
    /// The snapshot keeps them in memory. If the keychain cannot be read, each of its values is the error.
    ///
    /// - Returns: The snapshot.
    public func snapshot() -> any ConfigSnapshot { ValetSnapshot(of: valet, providerName: providerName, keyName: keyName) }

    /// Passes a snapshot, and another one after each change by any process, to a closure.
    ///
    /// - Parameter updatesHandler: A closure that receives the snapshots.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    nonisolated(nonsending) public func watchSnapshot<Return: ~Copyable>(
        updatesHandler:
            nonisolated(nonsending) (
                _ updates: ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>
            ) async throws -> Return
    ) async throws -> Return {
        let (name, keyName) = (providerName, keyName)
        let updates = Updates(valet: valet) { valet in
            ValetSnapshot(of: valet, providerName: name, keyName: keyName) as any ConfigSnapshot
        } isEqual: {
            ($0 as? ValetSnapshot)?.hasValues(of: $1) == true
        }
        return try await updatesHandler(ConfigUpdatesAsyncSequence(updates))
    }
}

/// A stored value that is not of the requested type.
///
/// The text contains neither the key nor the value.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public struct UnexpectedValueError: Error, Hashable, CustomStringConvertible {
    /// The requested type.
    public let type: ConfigType

    /// One sentence about the problem.
    public var description: String { "A stored value cannot be read as the type \(type.rawValue)." }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
private func lookUp(_ name: String, _ type: ConfigType, in valet: Valet) throws -> LookupResult {
    let stored = try valet.valueIfPresent(for: ValetKey<Data>(name))
    return LookupResult(encodedKey: name, value: try stored.map { try ConfigValue(stored: $0, type) })
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension ConfigValue {
    /// Reads the stored form of a value; see ``ValetProvider``.
    fileprivate init(stored data: Data, _ type: ConfigType) throws(UnexpectedValueError) {
        func decoded<Value: Decodable>(_ type: Value.Type) -> Value? { try? JSONDecoder().decode(type, from: data) }
        let text = String(validating: data, as: UTF8.self)
        let trimmed = text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
        let content: ConfigContent? =
            switch type {
            case .string: text.map(ConfigContent.string)
            case .int: Int(trimmed).map(ConfigContent.int)
            case .double: Double(trimmed).map(ConfigContent.double)
            case .bool: Bool(word: trimmed).map(ConfigContent.bool)
            case .bytes: .bytes(Array(data))
            case .stringArray: decoded([String].self).map(ConfigContent.stringArray)
            case .intArray: decoded([Int].self).map(ConfigContent.intArray)
            case .doubleArray: decoded([Double].self).map(ConfigContent.doubleArray)
            case .boolArray: decoded([Bool].self).map(ConfigContent.boolArray)
            case .byteChunkArray: decoded([Data].self).map { .byteChunkArray($0.map(Array.init)) }
            }
        guard let content else { throw UnexpectedValueError(type: type) }
        self.init(content, isSecret: true)
    }
}

extension Bool {
    fileprivate init?(word: String) {
        switch word.lowercased() {
        case "true", "yes", "1": self = true
        case "false", "no", "0": self = false
        default: return nil
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Result<LookupResult, any Error> {
    /// Whether both are the same value, or errors for the same reason.
    fileprivate func isEqual(to other: Self) -> Bool {
        switch (self, other) {
        case (.success(let value), .success(let otherValue)): value == otherValue
        case (.failure(let error), .failure(let otherError)):
            (error as? ValetFailure)?.reason == (otherError as? ValetFailure)?.reason
                && error as? UnexpectedValueError == otherError as? UnexpectedValueError
        default: false
        }
    }
}

// MARK: Snapshots and updates

/// All values of a valet at one moment.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
private struct ValetSnapshot: ConfigSnapshot, CustomStringConvertible, CustomReflectable {
    let providerName: String
    private let keyName: @Sendable (AbsoluteConfigKey) -> String
    /// The values by the UTF-8 bytes of their keys: canonically equivalent keys have separate values.
    private let values: Result<[[UInt8]: Data], ValetFailure>

    init(of valet: Valet, providerName: String, keyName: @escaping @Sendable (AbsoluteConfigKey) -> String) {
        self.providerName = providerName
        self.keyName = keyName
        values = Result { () throws(ValetFailure) in
            Dictionary(try valet.allObjects().map { (Array($0.key.utf8), $0.value) }) { first, _ in first }
        }
    }

    func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
        let name = keyName(key)
        let stored = try values.get()[Array(name.utf8)]
        return LookupResult(encodedKey: name, value: try stored.map { try ConfigValue(stored: $0, type) })
    }

    /// Neither a key nor a value.
    var description: String { "\(providerName)[\((try? values.get())?.count ?? 0) values]" }
    var customMirror: Mirror { Mirror(self, children: [(label: String?, value: Any)]()) }

    func hasValues(of other: any ConfigSnapshot) -> Bool {
        guard let other = other as? ValetSnapshot else { return false }
        switch (values, other.values) {
        case (.success(let own), .success(let others)): return own == others
        case (.failure(let own), .failure(let others)): return own.reason == others.reason
        default: return false
        }
    }
}

/// What a valet contains now, and again each time that it has changed.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
private struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    typealias Failure = Never

    let valet: Valet
    let read: @Sendable (Valet) -> Element
    let isEqual: @Sendable (Element, Element) -> Bool

    func makeAsyncIterator() -> Iterator { Iterator(updates: self, changes: valet.changes.makeAsyncIterator()) }

    struct Iterator: AsyncIteratorProtocol {
        let updates: Updates
        /// Begun before the first read, so that no change is missed.
        var changes: AsyncStream<Void>.Iterator
        var last: Element?

        init(updates: Updates, changes: AsyncStream<Void>.Iterator) {
            self.updates = updates
            self.changes = changes
        }

        mutating func next() async -> Element? { await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            let read = updates.read
            while true {
                if last != nil, await changes.next(isolation: actor) == nil { return nil }
                // Nil: the task was canceled.
                guard let current = try? await updates.valet.asynchronously.run({ read($0) }) else { return nil }
                if let last, updates.isEqual(last, current) { continue }
                last = current
                return current
            }
        }
    }
}
#endif
