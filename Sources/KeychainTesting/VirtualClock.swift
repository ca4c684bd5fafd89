// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
public import Foundation
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

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

extension VirtualClock: WallClock, MonotonicTime {
    package func now() -> Double { date.timeIntervalSinceReferenceDate }

    package func nowNanoseconds() -> UInt64 {
        let (seconds, attoseconds) = elapsed.withLock { $0.components }
        return UInt64(seconds) &* 1_000_000_000 &+ UInt64(attoseconds / 1_000_000_000)
    }
}
#endif
