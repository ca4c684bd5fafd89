// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import CKeychainTestingMarker
public import Foundation
internal import Keybag
package import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// A keychain without files: real rules, real encryption, and gone with the last reference to it.
///
/// While its scope lasts, every `SecItem…` function, and with them Valet, works on it and on nothing else. Scopes follow
/// Swift's structured concurrency; `perform` carries one to where that does not reach: a detached task, a Dispatch queue,
/// a thread. A call from outside every scope is answered `errSecNotAvailable` as soon as a program links KeychainTesting,
/// so that no test can touch a user's keychain.
///
/// A test can lock it, move its time on, and let things go wrong:
///
///     let keychain = try #require(InMemoryKeychain.current)
///     try keychain.lock()
///     keychain.clock.advance(by: .seconds(60))
///     keychain.fail(.writes, with: .diskFull, times: 1)
public final class InMemoryKeychain: Sendable {
    /// The keychain of the innermost scope around the caller; nil outside.
    public static var current: InMemoryKeychain? { scope }

    @TaskLocal private static var scope: InMemoryKeychain?

    /// The time that the keychain goes by.
    public let clock: VirtualClock

    package let keychain: MemoryKeychain
    /// The same keychain in the hands of the test, for whom nothing goes wrong.
    let control: MemoryKeychain

    /// Makes an empty keychain.
    ///
    /// - Parameters:
    ///   - applicationIdentifier: What the program under test is called; also the default access group.
    ///   - accessGroups: Access groups the program is entitled to beside that, as in `keychain-access-groups`. The first
    ///     one, if any, is the default for new items, as on Apple's platforms.
    /// - Throws: An error when the system gives no random bytes or no memory.
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
        let protector = try InMemoryProtector()
        let document = try OpenKeybag.make(
            storeID: protector.storeID, deviceSecret: try protector.deviceSecret(for: protector.storeID),
            protector: KeybagDocument.ProtectorRecord(kind: .keyFile))
        let store = InMemoryItemStore(
            keybag: StoredKeybag(generation: document.generation, copies: [document.encoded, document.encoded]))
        let holder = ProcessMemoryKeyHolder(
            storeID: protector.storeID,
            epochSource: { () throws(KeychainFailure) in try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() } },
            keys: ProcessMemoryKeys(time: clock))
        let parts = MemoryKeychain.Parts(
            store: store, protector: protector, holder: holder, clock: clock,
            // What is derived here protects nothing: the cheapest cost that is accepted.
            policy: PasscodePolicy(cost: PasscodeCost(memoryMebibytes: 1) ?? .standard), time: clock)
        keychain = MemoryKeychain(parts: parts, entitlements: entitlements)
        control = MemoryKeychain(parts: parts.withoutFaults, entitlements: entitlements)
    }

    private init(_ keychain: MemoryKeychain, sharingWith other: InMemoryKeychain) {
        self.keychain = keychain
        control = other.control
        clock = other.clock
    }

    /// The same keychain, for what another program does with it.
    package func sharedWithProgram(entitledTo entitlements: Entitlements) -> InMemoryKeychain {
        InMemoryKeychain(keychain.entitled(to: entitlements), sharingWith: self)
    }

    /// Runs `body` on this keychain.
    ///
    /// Use it to carry a scope into a detached task, a Dispatch queue or a thread.
    public func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
        try Self.$scope.withValue(self) {
            try CurrentKeychain.with(keychain, body)
        }
    }

    /// Runs `body` on this keychain, and every task that it starts.
    public func perform<Result>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Self.$scope.withValue(self) {
            try await CurrentKeychain.$bound.withValue(keychain, operation: body)
        }
    }
}

/// Runs `body` on a fresh, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: Access groups the program under test is entitled to, beside its own.
///   - body: What to run; `InMemoryKeychain.current` is the keychain.
/// - Returns: What `body` returns.
/// - Throws: What `body` throws, or an error when the keychain could not be made.
public func withInMemoryKeychain<Result>(accessGroups: [String] = [], _ body: () throws -> Result) throws -> Result {
    try InMemoryKeychain(accessGroups: accessGroups).perform(body)
}

/// Runs `body`, and every task that it starts, on a fresh, empty in-memory keychain.
///
/// - Parameters:
///   - accessGroups: Access groups the program under test is entitled to, beside its own.
///   - isolation: The caller's actor; `body` stays on it.
///   - body: What to run; `InMemoryKeychain.current` is the keychain.
/// - Returns: What `body` returns.
/// - Throws: What `body` throws, or an error when the keychain could not be made.
public func withInMemoryKeychain<Result>(
    accessGroups: [String] = [], isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
) async throws -> Result {
    try await InMemoryKeychain(accessGroups: accessGroups).perform(body)
}

/// The time of an in-memory keychain: it begins when the keychain is made, at the system's time, and stands still until a test
/// moves it on.
///
/// Dates of items and the time after which a keychain locks itself both go by it, so a test waits for nothing:
///
///     keychain.clock.advance(by: .seconds(15 * 60))
public final class VirtualClock: Sendable {
    private let start = Date()
    private let elapsed = Mutex(Duration.zero)

    init() {}

    /// What the clock shows: what items are dated with that are added or changed now.
    public var date: Date { start.addingTimeInterval(elapsed.withLock { $0 / .seconds(1) }) }

    /// Moves the time on.
    ///
    /// - Parameter duration: For how long; a clock does not go back, so a negative duration counts as none.
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
