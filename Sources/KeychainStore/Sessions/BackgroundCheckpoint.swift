// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// Copies the -wal file into the database on a thread of its own, while the writer fills its next transaction.
///
/// A device that joins a circle with a million items changes each page of some indexes many times. Copying the pages takes a fifth of the time, half of
/// it spent waiting for the disk.
///
/// While transactions follow each other, the -wal file only grows: SQLite writes it from its start again once all of it is copied and no connection reads it.
/// So the writer itself copies the rest from time to time.
final class BackgroundCheckpoint: @unchecked Sendable {
    // Unchecked: the admitted writer alone calls the functions. The session belongs to the thread while it runs; `isEnded` orders their uses.

    /// The size of the -wal file, in pages, from which the writer copies the rest: 256 MiB.
    static let largestFrameCount: Int64 = 65_536

    private var session: StoreSession?
    private let isEnded = TimedLock()
    private var isRunning = false
    /// Whether the -wal file had only known changes when the thread was started.
    private var wasVerified = false

    init(_ session: StoreSession) {
        self.session = session
        _ = isEnded.acquire(untilNanoseconds: 0)
    }

    /// Begins to copy, after a commit; returns false if the system has no thread.
    ///
    /// `isVerified`: whether the -wal file is known to have only changes that belong to the state of the store.
    func start(of isVerified: Bool) -> Bool {
        wasVerified = isVerified
        isRunning = BackgroundThread.start { [self] in
            session?.connection.checkpointIfDue()
            isEnded.release()
        }
        return isRunning
    }

    /// Records what the thread has written, if it has ended; returns whether it has.
    ///
    /// By the writer and not by the thread: both would read and write the anchor.
    func finish(waits: Bool, records: Bool) -> Bool {
        guard isRunning else { return true }
        guard isEnded.acquire(untilNanoseconds: waits ? .max : 0) else { return false }
        isRunning = false
        if wasVerified, records { session?.recordOwnWrites() } else { session?.connection.forgetOwnWrites() }
        return true
    }

    /// Waits for the thread, and closes its connection; records nothing, because the caller may not be the admitted writer.
    func close() {
        _ = finish(waits: true, records: false)
        session = nil
    }
}
