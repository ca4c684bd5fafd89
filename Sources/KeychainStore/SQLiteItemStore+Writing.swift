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
        try ForkDetection.requireNotForked()
        var outcome: WriteOutcome<Result>?
        try perform(sharesFlush: sharesFlush) { session throws(KeychainFailure) in
            guard try session.hasKeybag(ofGeneration: expected) else {
                outcome = .keybagChanged
                return
            }
            outcome = .written(try session.write(within: options.quota) { () throws(KeychainFailure) in try body(session) })
        }
        guard let outcome else { throw KeychainFailure(.internal, "a write ended without an outcome") }
        return outcome
    }

    package func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        try perform(sharesFlush: false) { session throws(KeychainFailure) in
            try session.setLockEpoch(session.lockEpoch().advanced(by: extent))
        }
    }

    /// Runs `body` in a transaction that is durable when this returns, and rolled back if `body` throws.
    ///
    /// With `sharesFlush`, `body` may run on another caller's thread, and a second time after a rollback.
    ///
    /// If damage prevents it from recording a change, the records are discarded, and `body` runs again.
    func perform(sharesFlush: Bool, _ body: WriteRequest.Body) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try performOnce(sharesFlush: sharesFlush, body)
        } catch {
            guard error.isDamage, error.subject == .store, hasDiscardedDamagedRecords() else { throw error }
            try performOnce(sharesFlush: sharesFlush, body)
        }
    }

    private func performOnce(sharesFlush: Bool, _ body: WriteRequest.Body) throws(KeychainFailure) {
        let deadline = writeDeadline()
        if sharesFlush, try writeOnce(sharesFlush: true, deadlineNanoseconds: deadline, body) { return }
        _ = try writeOnce(sharesFlush: false, deadlineNanoseconds: deadline, body)
    }

    /// Returns false if the write was rolled back because of another caller's write in the same transaction.
    private func writeOnce(
        sharesFlush: Bool, deadlineNanoseconds: UInt64, _ body: WriteRequest.Body
    ) throws(KeychainFailure) -> Bool {
        if writerQueue.tryAcquire() {
            return try writeAsLeader(sharesFlush: sharesFlush, deadlineNanoseconds: deadlineNanoseconds, body)
        }
        // The request releases `body` before it is answered, and this caller waits until then. So `body` does not escape.
        return try withoutActuallyEscaping(body) { body throws(KeychainFailure) -> Bool in
            let request = WriteRequest(sharesFlush: sharesFlush, body)
            switch writerQueue.wait(with: request, untilNanoseconds: deadlineNanoseconds) {
            case .acquired: return try writeAsLeader(sharesFlush: sharesFlush, deadlineNanoseconds: deadlineNanoseconds, body)
            case .written: return true
            case .failed(let failure): throw failure
            case .retryAlone: return false
            case .timedOut:
                request.withdraw()
                throw writeTimeoutFailure
            }
        }
    }

    /// Writes as the admitted writer, together with the requests that wait in the queue.
    ///
    /// The leader's body runs first and needs no savepoint: if it fails, the whole transaction is rolled back.
    private func writeAsLeader(
        sharesFlush: Bool, deadlineNanoseconds: UInt64, _ body: WriteRequest.Body
    ) throws(KeychainFailure) -> Bool {
        var group = WriteGroup(nanosecondLimit: options.groupNanosecondLimit)
        var outcome = WriteGroup.Outcome.rolledBack
        defer {
            // The next writer is admitted before the members are answered: all other callers wait for it.
            writerQueue.release()
            group.answer(outcome)
        }
        return try withSession(deadlineNanoseconds: deadlineNanoseconds) { session throws(KeychainFailure) in
            try session.beginWriting(deadlineNanoseconds: deadlineNanoseconds)
            do throws(KeychainFailure) {
                try session.checkFormat()
                session.connection.forgetOwnWrites()
                try body(session)
                if sharesFlush, session.health.transactionFailure == nil, !group.collectRequests(into: session, from: writerQueue) {
                    session.rollBack()
                    return false
                }
                guard session.lostFiles.isEmpty else { throw abandonLostFiles(of: session) }
                let state = try session.storePendingState()
                var pacing = session.pacing
                try pacing.record(group) { () throws(KeychainFailure) in try session.commit() }
                session.pacing = pacing
                outcome = .committed
                // Without delay: the next writer records its commit only if it finds this one recorded.
                let isVerified = session.recordOwnWrites(of: state)
                // A thread that copies the -wal file would keep it from being emptied.
                if session.mayNeedScrub { _ = session.checkpoint?.finish(waits: true, records: isVerified) }
                finishScrub(on: session)
                if !copiesBeside(session, isVerified: isVerified) { session.connection.checkpointIfDue() }
                // Both copy what the -wal file contains, so it must be known.
                if isVerified { session.recordOwnWrites() }
            } catch {
                session.rollBack()
                if session.outcomeIsUnknown { outcome = .failed(error) }
                // The failure of one member, such as a row too large for the disk, must not fail the others: each retries alone.
                if group.count > 0, !session.outcomeIsUnknown { return false }
                throw error
            }
            return true
        }
    }

    /// Runs `body` with the writer's connection.
    ///
    /// Returns false if another thread is writing.
    func withIdleWriter(_ body: (_ session: StoreSession) -> Void) throws(KeychainFailure) -> Bool {
        guard writerQueue.tryAcquire() else { return false }
        defer { writerQueue.release() }
        try withSession(deadlineNanoseconds: writeDeadline()) { session in body(session) }
        return true
    }

    private func withSession<Result>(
        deadlineNanoseconds: UInt64, _ body: (_ session: StoreSession) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let session = try checkOutWriter(deadlineNanoseconds: deadlineNanoseconds)
        defer {
            if session.health.isBroken {
                closeConnections(ifGeneration: session.poolGeneration, outcomeIsUnknown: session.outcomeIsUnknown)
            }
        }
        do throws(KeychainFailure) {
            return try body(session)
        } catch {
            guard session.health.transactionFailure?.isBusy == true else { throw error }
            throw KeychainFailure(
                .notAvailable, "another process has held the store's write lock for \(options.busyTimeoutMilliseconds) ms",
                subject: .store, cause: .timedOut(milliseconds: options.busyTimeoutMilliseconds))
        }
    }

    func writeDeadline() -> UInt64 {
        MonotonicClock.nowNanoseconds() + UInt64(clamping: options.busyTimeoutMilliseconds) * 1_000_000
    }

    private var writeTimeoutFailure: KeychainFailure {
        KeychainFailure(
            .notAvailable, "another thread has been writing to the store for \(options.busyTimeoutMilliseconds) ms",
            subject: .store, cause: .timedOut(milliseconds: options.busyTimeoutMilliseconds))
    }
}

extension SQLiteItemStore {
    /// Lets another thread copy the -wal file into the database, if a transaction has made it large; returns false if the caller has to copy it.
    private func copiesBeside(_ session: StoreSession, isVerified: Bool) -> Bool {
        let frameCount = session.connection.walFrameCount
        let isLarge = frameCount >= options.largeLogFrameCount && !session.mayNeedScrub
        let isTooLarge = frameCount > BackgroundCheckpoint.largestFrameCount
        if let checkpoint = session.checkpoint {
            guard checkpoint.finish(waits: !isLarge || isTooLarge, records: isVerified) else { return true }
        } else if isLarge {
            session.checkpoint = (try? openSession(.reader, poolGeneration: session.poolGeneration)).map { BackgroundCheckpoint($0) }
            try? session.enlargeCache(kibibytes: StoreSession.cacheOfLargeTransactions)
        }
        guard isLarge, !isTooLarge, let checkpoint = session.checkpoint else { return false }
        return checkpoint.start(of: isVerified)
    }

    /// How long a replacement of the keybag waits for readers of the previous state.
    private static let scrubWaitNanoseconds: UInt64 = 250_000_000

    /// Empties the -wal file after a replacement of the keybag, so that no bytes of the old keybag remain in it.
    ///
    /// Best effort: the replacement is already durable, so a failure here is ignored. The mark in the store stays, and a later write
    /// or open retries. The caller must be the admitted writer.
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
                session.rollBack()
                throw error
            }
        }
        session.mayNeedScrub = false
    }
}
