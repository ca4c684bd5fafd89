// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

extension SQLiteItemStore {
    package func write<Result>(
        ifKeybagGeneration expected: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try write(ifKeybagGeneration: expected, sharesFlush: false, body)
    }

    package func write<Result>(
        ifKeybagGeneration expected: UInt64, sharesFlush: Bool, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        try refuseForkedChild()
        var outcome: WriteOutcome<Result>?
        try perform(sharesFlush: sharesFlush) { session throws(KeychainFailure) in
            outcome = try session.keybagGeneration() == expected ? .written(body(session)) : .keybagChanged
        }
        guard let outcome else { throw KeychainFailure(.internal, "a write ended without an outcome") }
        return outcome
    }

    package func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        try refuseForkedChild()
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            try session.setLockEpoch(session.lockEpoch().advanced(by: extent))
        }
    }

    /// Makes what `body` does durable, or undoes it when `body` throws.
    ///
    /// With `sharesFlush` it may run on another caller's thread, and a second time after what it did was undone.
    private func perform(sharesFlush: Bool, _ body: WriteRequest.Body) throws(KeychainFailure) {
        let deadline = writeDeadline()
        if sharesFlush, try attempt(sharesFlush: true, deadlineNanoseconds: deadline, body) { return }
        _ = try attempt(sharesFlush: false, deadlineNanoseconds: deadline, body)
    }

    /// False when it was undone because of another caller's write in the same transaction.
    private func attempt(
        sharesFlush: Bool, deadlineNanoseconds: UInt64, _ body: WriteRequest.Body
    ) throws(KeychainFailure) -> Bool {
        if turns.tryAcquire() { return try lead(sharesFlush: sharesFlush, deadlineNanoseconds: deadlineNanoseconds, body) }
        // The caller waits here for as long as anybody may run its body, and the request lets go of it before it is answered.
        return try withoutActuallyEscaping(body) { body throws(KeychainFailure) -> Bool in
            let request = WriteRequest(sharesFlush: sharesFlush, body)
            switch turns.wait(with: request, untilNanoseconds: deadlineNanoseconds) {
            case .turn: return try lead(sharesFlush: sharesFlush, deadlineNanoseconds: deadlineNanoseconds, body)
            case .written: return true
            case .failed(let failure): throw failure
            case .retryAlone: return false
            case .late:
                request.withdraw()
                throw writeTimeoutFailure
            }
        }
    }

    /// Writes, having the writer's turn, and takes along the requests of others.
    ///
    /// The own body needs no savepoint: when it fails nobody else has run yet, and all is undone.
    private func lead(
        sharesFlush: Bool, deadlineNanoseconds: UInt64, _ body: WriteRequest.Body
    ) throws(KeychainFailure) -> Bool {
        var group = WriteGroup()
        var outcome = WriteGroup.Outcome.undone
        defer {
            // The next writer first: it is the one that all others wait for.
            turns.giveBack()
            group.answer(outcome)
        }
        return try withSession(deadlineNanoseconds: deadlineNanoseconds) { session throws(KeychainFailure) in
            try session.beginWriting(deadlineNanoseconds: deadlineNanoseconds)
            do throws(KeychainFailure) {
                try session.checkFormat()
                try body(session)
                if sharesFlush, session.health.transactionFailure == nil, !group.join(session, from: turns) {
                    session.undo()
                    return false
                }
                // A file without a name is gone when it is closed: nothing in it is durable.
                guard session.pathStillMatchesFile else {
                    session.health.markBroken()
                    throw KeychainFailure(
                        .notAvailable, "the store's file was removed or replaced while it was open; nothing was changed",
                        requiresReopening: true)
                }
                var pacing = session.pacing
                try pacing.note(group) { () throws(KeychainFailure) in try session.commit() }
                session.pacing = pacing
                outcome = .committed
            } catch {
                session.undo()
                if session.outcomeIsUnknown { outcome = .failed(error) }
                // One that is too large for the disk, say, must not fail the others.
                if group.count > 0, !session.outcomeIsUnknown { return false }
                throw error
            }
            finishScrub(on: session)
            return true
        }
    }

    /// Runs `body` with the writer's connection while nobody else writes in this process.
    func withWriter(_ body: (_ session: StoreSession) -> Void) throws(KeychainFailure) {
        let deadline = writeDeadline()
        guard turns.tryAcquire() else { throw writeTimeoutFailure }
        defer { turns.giveBack() }
        try withSession(deadlineNanoseconds: deadline) { session in body(session) }
    }

    private func withSession<Result>(
        deadlineNanoseconds: UInt64, _ body: (_ session: StoreSession) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let session = try checkOutWriter(deadlineNanoseconds: deadlineNanoseconds)
        defer {
            if session.health.isBroken { drop(ifEpoch: session.epoch, outcomeIsUnknown: session.outcomeIsUnknown) }
        }
        do throws(KeychainFailure) {
            return try body(session)
        } catch {
            guard session.health.transactionFailure?.isBusy == true else { throw error }
            throw KeychainFailure(
                .notAvailable, "another process has held the store's write lock for \(options.busyTimeoutMilliseconds) ms")
        }
    }

    private func writeDeadline() -> UInt64 {
        MonotonicClock.nowNanoseconds() + UInt64(clamping: options.busyTimeoutMilliseconds) * 1_000_000
    }

    private var writeTimeoutFailure: KeychainFailure {
        KeychainFailure(.notAvailable, "another thread has been writing to the store for \(options.busyTimeoutMilliseconds) ms")
    }
}

extension SQLiteItemStore {
    /// How long a change of keys waits for readers of the state before it.
    private static let scrubWaitNanoseconds: UInt64 = 250_000_000

    /// Finishes what a change of keys left to do: nothing of an old keybag must stay in the -wal file.
    ///
    /// The change itself is durable already, so what fails here fails no call: the mark stays, and a later write or opening tries
    /// again. The caller has the writer's turn.
    func finishScrub(on session: StoreSession) {
        guard session.mayNeedScrub, !session.health.isBroken else { return }
        let deadline = session.waitsForScrub ? MonotonicClock.nowNanoseconds() + Self.scrubWaitNanoseconds : 0
        session.waitsForScrub = false
        _ = try? scrub(session, deadlineNanoseconds: deadline)
    }

    private func scrub(_ session: StoreSession, deadlineNanoseconds: UInt64) throws(KeychainFailure) {
        session.connection.busyHandler.setDeadline(atNanoseconds: deadlineNanoseconds)
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
        session.mayNeedScrub = false
    }
}
