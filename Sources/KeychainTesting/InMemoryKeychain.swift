// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import CKeychainTestingMarker
public import Foundation
package import KeychainCore
package import KeychainEngine
internal import KeychainSystem
internal import Synchronization

/// A keychain in memory for tests, with the rules and the encryption of a keychain in a file.
///
/// Within the scope of an in-memory keychain, every `SecItem…` function, `LAContext`, and Valet use that keychain and no other. The
/// trait `.inMemoryKeychain` of KeychainTestingTraits and `withInMemoryKeychain(accessGroups:_:)` open a scope. Scopes follow
/// structured concurrency: child tasks are inside. Use ``perform(_:)`` to enter the scope from a detached task, a Dispatch queue, or a
/// thread.
///
/// In a program that links this module, a call outside every scope returns `errSecNotAvailable`. A test can therefore never change
/// the user's keychain.
///
/// A test can lock the keychain, advance its clock, inject faults, and answer prompts:
///
///     let keychain = try #require(InMemoryKeychain.current)
///     try keychain.lock()
///     keychain.clock.advance(by: .seconds(60))
///     keychain.fail(.writes, with: .diskFull, times: 1)
///
/// An in-memory keychain can be used from several threads at the same time.
public final class InMemoryKeychain: Sendable {
    /// The keychain of the innermost scope around the caller; nil outside every scope.
    public static var current: InMemoryKeychain? { scope }

    @TaskLocal private static var scope: InMemoryKeychain?

    /// The clock of the keychain, which a test advances.
    public let clock: VirtualClock

    /// The keychain as the program under test uses it.
    package let keychain: LocalKeychain
    /// The same keychain as the test itself uses it: without faults.
    let unrestricted: LocalKeychain
    let storage: InMemoryBackend.Storage

    /// Creates an empty keychain without a passcode.
    ///
    /// - Parameters:
    ///   - applicationIdentifier: The application identifier of the program under test, which is also its default access group.
    ///   - accessGroups: The access groups in the program's entitlement `keychain-access-groups`. As on Apple platforms, new items
    ///     get the first of them; without any, they get the application identifier.
    /// - Throws: An error if the system provides no random bytes or no memory.
    public convenience init(applicationIdentifier: String = "in-memory", accessGroups: [String] = []) throws {
        try self.init(
            entitlements: Entitlements(
                applicationIdentifier: applicationIdentifier, keychainAccessGroups: accessGroups,
                origin: "the accessGroups of the in-memory keychain"
            )
        )
    }

    package init(entitlements: Entitlements) throws(KeychainFailure) {
        keychain_testing_marker_keep()
        clock = VirtualClock()
        storage = try InMemoryBackend.Storage(clock: clock)
        keychain = LocalKeychain(backend: InMemoryBackend(storage: storage, entitlements: entitlements))
        unrestricted = LocalKeychain(backend: InMemoryBackend.unrestricted(storage, entitlements: entitlements))
    }

    private init(sharing other: InMemoryKeychain, entitlements: Entitlements) {
        clock = other.clock
        storage = other.storage
        keychain = LocalKeychain(backend: InMemoryBackend(storage: storage, entitlements: entitlements))
        unrestricted = other.unrestricted
    }

    /// Returns the same keychain as a program with other entitlements uses it.
    package func sharedWithProgram(entitledTo entitlements: Entitlements) -> InMemoryKeychain {
        InMemoryKeychain(sharing: self, entitlements: entitlements)
    }

    /// The rows of the keychain.
    package var store: InMemoryItemStore { storage.store }

    /// The script that answers prompts.
    package var prompter: ScriptedPresencePrompter { storage.person }

    /// Runs `body` in the scope of this keychain.
    ///
    /// Use it to enter the scope from a detached task, a Dispatch queue, or a thread.
    ///
    /// - Parameter body: The code to run. ``current`` is this keychain.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Self.$scope.withValue(self) {
            try CurrentKeychain.with(keychain, body)
        }
    }

    /// Runs `body`, and every task that it starts, in the scope of this keychain.
    ///
    /// - Parameters:
    ///   - isolation: The caller's actor, on which `body` runs.
    ///   - body: The code to run. ``current`` is this keychain.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func perform<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$scope.withValue(self) {
            try await CurrentKeychain.$bound.withValue(keychain, operation: body)
        }
    }
}

/// Runs `body` in the scope of a new, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: The access groups in the entitlement `keychain-access-groups` of the program under test.
///   - body: The code to run. ``InMemoryKeychain/current`` is the keychain.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`, or an error if the keychain cannot be created.
public func withInMemoryKeychain<Result>(accessGroups: [String] = [], _ body: () throws -> Result) throws -> Result {
    try InMemoryKeychain(accessGroups: accessGroups).perform(body)
}

/// Runs `body`, and every task that it starts, in the scope of a new, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: The access groups in the entitlement `keychain-access-groups` of the program under test.
///   - isolation: The caller's actor, on which `body` runs.
///   - body: The code to run. ``InMemoryKeychain/current`` is the keychain.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`, or an error if the keychain cannot be created.
public func withInMemoryKeychain<Result>(
    accessGroups: [String] = [], isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async throws -> Result {
    try await InMemoryKeychain(accessGroups: accessGroups).perform(body)
}

/// The clock of an in-memory keychain.
///
/// It starts at the system's time when the keychain is made, and stands still until a test advances it. The dates of items,
/// auto-lock, and the reuse of authentications use this clock, so a test never has to wait:
///
///     keychain.clock.advance(by: .seconds(15 * 60))
public final class VirtualClock: Sendable {
    private let start = Date(timeIntervalSinceReferenceDate: SystemWallClock().now())
    private let elapsed = Mutex(Duration.zero)

    init() {}

    /// The current time of the clock: the date of items that are added or changed now.
    public var date: Date { start.addingTimeInterval(elapsed.withLock { $0 / .seconds(1) }) }

    /// Advances the clock.
    ///
    /// - Parameter duration: How far to advance the clock. A clock does not run backward: negative durations have no effect.
    public func advance(by duration: Duration) {
        elapsed.withLock { $0 += max(duration, .zero) }
    }
}

extension VirtualClock: WallClock, ContinuousTime {
    package func now() -> Double { date.timeIntervalSinceReferenceDate }

    package func nowNanoseconds() -> UInt64 {
        let (seconds, attoseconds) = elapsed.withLock { $0.components }
        return UInt64(seconds) &* 1_000_000_000 &+ UInt64(attoseconds / 1_000_000_000)
    }
}
#endif
