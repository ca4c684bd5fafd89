// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What went wrong on a connection so far.
///
/// Shared by the connection and its statements, used by one thread at a time.
final class ConnectionHealth {
    /// The connection must not be used again.
    private(set) var isBroken = false
    /// The first failure of the running transaction that leaves it in doubt: such a transaction is not committed.
    private(set) var transactionFailure: SQLiteFailure?

    func transactionBegins() {
        transactionFailure = nil
    }

    /// For a reason that SQLite does not know: its file is no longer the one that is meant.
    func breakConnection() {
        isBroken = true
    }

    /// Takes note of a failure and gives it back in the caller's terms.
    func record(_ failure: SQLiteFailure) -> KeychainFailure {
        if failure.breaksConnection { isBroken = true }
        if !failure.isConstraint && transactionFailure == nil { transactionFailure = failure }
        return failure.keychainFailure
    }
}
