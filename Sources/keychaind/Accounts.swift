// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// The user numbers that have an account.
///
/// A person with an entry in /etc/subuid can run processes under thousands of other numbers, each of which would have limits of its own.
final class Accounts: Sendable {
    private let known: Mutex<Set<UInt32>>
    private let requireAccount: @Sendable (UInt32) throws(KeychainFailure) -> Void

    /// Creates the accounts with the users who had one earlier.
    ///
    /// `requireAccount` looks for an account in the user database.
    init(
        known: Set<UInt32> = [],
        requireAccount: @escaping @Sendable (UInt32) throws(KeychainFailure) -> Void = { user throws(KeychainFailure) in
            try Accounts.requireInDatabase(user)
        }
    ) {
        self.known = Mutex(known)
        self.requireAccount = requireAccount
    }

    /// Whether a user had an account when keychaind has looked last.
    func isKnown(_ user: UInt32) -> Bool { known.withLock { $0.contains(user) } }

    /// Looks for an account, unless there was one earlier; throws as `requireInDatabase` does.
    func require(_ user: UInt32) throws(KeychainFailure) {
        if isKnown(user) { return }
        try requireAccount(user)
        known.withLock { _ = $0.insert(user) }
    }

    /// Throws `.notAvailable` for a user without an account, and if the user database cannot be read.
    static func requireInDatabase(_ user: UInt32) throws(KeychainFailure) {
        let group: UInt32?
        do throws(Errno) {
            group = try UserDatabase.primaryGroup(ofUser: user)
        } catch {
            throw KeychainFailure(.notAvailable, "the user database cannot be read: \(error)", cause: .system(errno: error.rawValue))
        }
        guard group != nil else {
            throw KeychainFailure(.notAvailable, "user \(user) is not in the user database of this machine", cause: .missing)
        }
    }
}
