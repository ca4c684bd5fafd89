// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension SQLiteItemStore {
    /// How long a change of keys waits for readers of the state before it.
    private static let scrubWaitNanoseconds: UInt64 = 250_000_000

    /// Finishes what a change of keys left to do: nothing of an old keybag must stay in the -wal file.
    ///
    /// The change itself is durable already, so what fails here fails no call: the mark stays, and a later write or opening tries
    /// again. The caller has the writer's turn.
    func finishScrub(on session: StoreSession) {
        guard session.mayOweScrub, !session.health.isBroken else { return }
        let deadline = session.waitsForScrub ? MonotonicClock.nowNanoseconds() + Self.scrubWaitNanoseconds : 0
        session.waitsForScrub = false
        _ = try? scrub(session, deadlineNanoseconds: deadline)
    }

    private func scrub(_ session: StoreSession, deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        session.connection.busyWait.giveUp(atNanoseconds: deadlineNanoseconds)
        if let pending = try session.scrubPending() {
            guard try session.connection.checkpointAndTruncate() else { return }
            try session.beginWriting(deadlineNanoseconds: deadlineNanoseconds)
            do throws(KeychainFailure) {
                try session.clearScrubPending(pending)
                try session.commit()
            } catch {
                session.undo()
                throw error
            }
        }
        session.mayOweScrub = false
    }
}
