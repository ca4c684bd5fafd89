// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainSystem
internal import Synchronization

/// The keychains of all users, one directory each, opened when a program of the user connects.
final class UserKeychains: Sendable {
    private let directory: String
    private let keychains = Mutex<[UInt32: LocalKeychain]>([:])

    /// `directory` is an absolute path; the directories of the users are in it, named by their numbers.
    init(in directory: String) {
        self.directory = directory
    }

    /// Returns the keychain of a user, with the entitlements of no program.
    func keychain(ofUser user: UInt32) throws(KeychainFailure) -> LocalKeychain {
        if let keychain = keychains.withLock({ $0[user] }) { return keychain }
        let home = "\(directory)/\(user)"
        try PrivateDirectory.make(home)
        var configuration = KeychainConfiguration(home: home)
        // The kernel's keyrings have room for some keys only, and all users' keys are those of one user here.
        configuration.keyHolder = .processMemory
        configuration.pinentry = .never
        configuration.presencePrompter = NoPrompter()
        let made = LocalKeychain(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "", origin: "keychaind"))
        return keychains.withLock { keychains in
            let keychain = keychains[user] ?? made
            keychains[user] = keychain
            return keychain
        }
    }
}

/// keychaind has neither a terminal nor a display: it cannot ask a person yet.
private struct NoPrompter: PresencePrompter {
    var canAsk: Bool { false }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        throw .promptUnavailable("keychaind cannot ask a person")
    }
}
