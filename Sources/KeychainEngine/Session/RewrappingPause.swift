// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// The time between two batches in which other writers have their turn.
///
/// Writers ask for the store's lock now and then and stand in no queue: without a pause, a rewrapping would nearly always be first.
package enum RewrappingPause {
    private static let shortest: UInt64 = 1_000_000
    private static let longest: UInt64 = 50_000_000

    /// About as long as the batch held the lock, in nanoseconds.
    package static func length(afterNanoseconds batchLength: UInt64) -> UInt64 {
        min(max(batchLength, shortest), longest)
    }

    /// Sleeps, after a batch that began then and has just ended.
    static func take(afterBatchFrom startNanoseconds: UInt64) {
        let batchLength = keychain_monotonic_nanoseconds() &- startNanoseconds
        var pause = timespec(tv_sec: 0, tv_nsec: Int(Self.length(afterNanoseconds: batchLength)))
        // A signal may end it early, which does no harm.
        _ = unsafe nanosleep(&pause, nil)
    }
}
