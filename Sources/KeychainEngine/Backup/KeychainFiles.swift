// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore

/// The files that a keychain consists of, which no backup may take the place of or be read from.
struct KeychainFiles {
    private let storePath: String
    private let keyDirectory: String

    init(of configuration: KeychainConfiguration) {
        storePath = PrivateFile.resolved(configuration.storePath)
        keyDirectory = PrivateFile.resolved(configuration.keyDirectory)
    }

    /// Throws `.parameter` for one of them.
    ///
    /// The store must not even be opened and closed: that would drop every lock that this process has on it.
    func refuse(_ path: String) throws(KeychainFailure) {
        let resolved = PrivateFile.resolved(path)
        let isPartOfStore = ["", "-wal", "-shm", "-journal"].contains { resolved == storePath + $0 }
        guard !isPartOfStore, !isStore(path), PrivateFile.directory(of: resolved) != keyDirectory else {
            throw KeychainFailure(.parameter, "\(path) is a file of the keychain itself; choose another place")
        }
    }

    /// Also under another name.
    private func isStore(_ path: String) -> Bool {
        var (first, second) = (stat(), stat())
        // Both structures are ours and outlive the calls.
        guard unsafe stat(path, &first) == 0, unsafe stat(storePath, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }
}
