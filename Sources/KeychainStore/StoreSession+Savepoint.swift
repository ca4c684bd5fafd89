// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension StoreSession {
    enum SavepointOutcome {
        case kept
        /// The transaction is as it was before.
        case undone(KeychainFailure)
        /// Nothing of the transaction can be kept.
        case transactionLost(KeychainFailure)
    }

    /// Runs one body of several within a transaction: what fails is undone alone.
    func runInSavepoint(_ body: WriteRequest.Body?) -> SavepointOutcome {
        health.transactionBegins()
        do throws(KeychainFailure) {
            try connection.run(.savepoint)
            try body?(self)
            // A statement failed and the body went on regardless.
            if let failure = health.transactionFailure { throw failure.keychainFailure }
            try connection.run(.releaseSavepoint)
            return .kept
        } catch {
            let failure = error
            // SQLite undoes a whole transaction by itself after some failures, and after others its memory is not to be trusted.
            guard !health.isBroken, connection.isInTransaction else { return .transactionLost(failure) }
            health.transactionBegins()
            do throws(KeychainFailure) {
                try connection.run(.rollbackToSavepoint)
                try connection.run(.releaseSavepoint)
                return .undone(failure)
            } catch {
                return .transactionLost(failure)
            }
        }
    }
}
