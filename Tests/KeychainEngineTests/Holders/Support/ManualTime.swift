// SPDX-License-Identifier: Apache-2.0
import KeychainEngine
import Synchronization

/// Time that stands still until a test moves it.
final class ManualTime: MonotonicTime {
    private let now = Atomic<UInt64>(1_000_000_000_000)

    func nowNanoseconds() -> UInt64 { now.load(ordering: .sequentiallyConsistent) }

    func pass(seconds: Double) {
        now.add(UInt64(seconds * 1e9), ordering: .sequentiallyConsistent)
    }

    /// As it is for a thread that took the time and was then kept waiting.
    func turnBack(seconds: Double) {
        now.subtract(UInt64(seconds * 1e9), ordering: .sequentiallyConsistent)
    }
}
