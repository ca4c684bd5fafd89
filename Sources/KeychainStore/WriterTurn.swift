// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Turns between the processes that write to one store.
///
/// SQLite has no queue: the lock is taken by the process that tries at the right moment. A process that writes again and again nearly always
/// has it when another one tries. So a waiting process marks the directory of the store, and a process that is about to write lets it go
/// first. Nothing depends on the mark: a process that ignores it is only unfair.
///
/// The directory is marked and not the database: closing another descriptor of the database drops the locks of SQLite in this process.
final class WriterTurn: @unchecked Sendable {
    // Unchecked: one thread at a time uses it, the admitted writer of its session.
    private let directory: OpenFile
    private let yieldNanosecondLimit: UInt64
    private var isMarked = false
    /// Until then others are not waited for: one that did not take its turn may have been stopped.
    private var yieldsAgainAtNanoseconds: UInt64 = 0

    private static let attemptNanoseconds: UInt64 = 50_000
    /// How long no turn is given after one that was not taken.
    private static let pauseNanoseconds: UInt64 = 100_000_000

    /// Returns nil if the directory cannot be opened.
    init?(directory path: String, yieldNanosecondLimit: UInt64) {
        guard let directory = try? OpenFile(path, .read) else { return nil }
        self.directory = directory
        self.yieldNanosecondLimit = yieldNanosecondLimit
    }

    /// Lets a process that waits write first, for a limited time.
    func yield() {
        guard directory.descriptor.isMarkedByOthers else { return }
        let start = MonotonicClock.nowNanoseconds()
        guard start >= yieldsAgainAtNanoseconds else { return }
        repeat {
            MonotonicClock.sleep(nanoseconds: Self.attemptNanoseconds / 2)
            guard directory.descriptor.isMarkedByOthers else { return }
        } while MonotonicClock.nowNanoseconds() - start < yieldNanosecondLimit
        yieldsAgainAtNanoseconds = MonotonicClock.nowNanoseconds() + Self.pauseNanoseconds
    }

    /// Marks this process as waiting, and returns the time until it should try again; nil if it has waited for long.
    ///
    /// A process that waits for a usual write tries often, so that it takes its turn promptly.
    func wait(attempt: Int) -> UInt64? {
        if !isMarked { isMarked = (try? directory.descriptor.setMark(true)) != nil }
        return attempt < Self.promptAttemptCount ? Self.attemptNanoseconds : nil
    }

    /// The number of attempts in the time of several flushes.
    private static let promptAttemptCount = 400

    /// This process no longer waits.
    func finishWaiting() {
        guard isMarked else { return }
        isMarked = false
        try? directory.descriptor.setMark(false)
    }
}
