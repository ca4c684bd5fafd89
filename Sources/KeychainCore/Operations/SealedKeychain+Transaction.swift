// SPDX-License-Identifier: Apache-2.0

/// A keychain that can carry out several calls in one transaction.
package protocol TransactionalKeychain: Keychain {
    /// Calls `body` with a keychain whose calls are parts of one transaction, which is durable when this returns.
    ///
    /// If `body` returns false, or one of its writes failed and may have left a part of its changes, everything is rolled back and the result
    /// is false. `body` may run again after a rollback. Its calls do not prompt the user: one that would have to fails with
    /// `.interactionNotAllowed`. Other processes cannot write meanwhile, so `body` must be short.
    func transaction(_ body: (any Keychain) -> Bool) throws(KeychainFailure) -> Bool
}

extension SealedKeychain {
    /// Calls `body` as `TransactionalKeychain.transaction` does.
    package func transaction(_ body: (any Keychain) -> Bool) throws(KeychainFailure) -> Bool {
        var isRejected = false
        do throws(KeychainFailure) {
            try write { writing throws(KeychainFailure) in
                let part = TransactionPart(writing)
                let keychain = SealedKeychain(
                    store: part, keys: keys, cipher: cipher, clock: clock, entitlements: entitlements, log: log)
                isRejected = !body(keychain) || part.hasFailed
                // Makes the store roll back.
                if isRejected { throw KeychainFailure(.internal, "a transaction was rolled back") }
            }
            return true
        } catch {
            guard isRejected else { throw error }
            return false
        }
    }
}

/// A store whose reads and writes are parts of one transaction.
///
/// `@unchecked Sendable`: it is used on the thread of the transaction only, while that runs.
private final class TransactionPart: ItemStore, @unchecked Sendable {
    private let writing: any ItemWriting
    /// Whether a write failed that may have changed something before.
    private(set) var hasFailed = false

    init(_ writing: any ItemWriting) {
        self.writing = writing
    }

    func read<Result>(_ body: (any ItemReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try body(writing)
    }

    /// The keybag cannot change within the transaction, which has checked its generation.
    func write<Result>(
        ifKeybagGeneration: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        do throws(KeychainFailure) {
            return .written(try body(writing))
        } catch {
            // These are found before anything is changed.
            if error.status != .itemNotFound, error.status != .duplicateItem { hasFailed = true }
            throw error
        }
    }

    func lockEpoch() throws(KeychainFailure) -> LockEpoch { try writing.lockEpoch() }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) {
        throw KeychainFailure(.internal, "a transaction locks nothing")
    }
}
