// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import Synchronization

/// The keychain of this process's user, in a file: opened at the first call, made at the first write.
package final class LocalKeychain: Keychain {
    package let configuration: KeychainConfiguration
    package let entitlements: Entitlements

    /// What an open keychain consists of.
    struct Opened: Sendable {
        let store: SQLiteItemStore
        let keybag: OpenKeybag
        let keychain: SealedKeychain
        let protector: any DeviceProtector
        /// Whether the keybag in use is the one that the store's last change left; without it nothing can be written.
        let isKeybagCurrent: Bool
    }

    private let opened = Mutex<Opened?>(nil)

    package init(configuration: KeychainConfiguration, entitlements: Entitlements) {
        self.configuration = configuration
        self.entitlements = entitlements
    }

    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        // A call that would be refused anyway makes no store.
        _ = try entitlements.admit(request)
        return try perform(creating: true) { keychain throws(KeychainFailure) in try keychain.add(request) }
    }

    package func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try requireAccess(.read, to: request.query)
        return try perform(creating: false) { keychain throws(KeychainFailure) in try keychain.copyMatching(request) }
    }

    package func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        if let newGroup = request.changes.text(.accessGroup) { try entitlements.require(newGroup, access: .write) }
        try perform(creating: false) { keychain throws(KeychainFailure) in try keychain.update(request) }
    }

    package func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try requireAccess(.write, to: request.query)
        try perform(creating: false) { keychain throws(KeychainFailure) in try keychain.delete(request) }
    }

    /// A group that the program may not use is refused also where no store exists yet.
    private func requireAccess(_ access: Entitlements.Access, to query: ItemQuery) throws(KeychainFailure) {
        guard opened.withLock({ $0 == nil }) else { return }
        _ = try entitlements.groups(forSearchNaming: query.attributes.text(.accessGroup), access: access)
    }

    /// Runs `body` on the open keychain, opening it first and once more if the store or its keybag changed beneath us.
    private func perform<Result>(
        creating: Bool, _ body: (SealedKeychain) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            let current = try open(creating: creating)
            do throws(KeychainFailure) {
                return try body(current.keychain)
            } catch {
                guard error.callsForReopening else { throw error }
                close(current)
            }
            return try body(try open(creating: creating).keychain)
        } catch {
            throw naming(error)
        }
    }

    /// SQLite and the keybag do not know which file it is that they cannot use; whoever reads the failure wants to.
    private func naming(_ failure: KeychainFailure) -> KeychainFailure {
        // The status decides first: "not found" is an everyday answer and must not cost a search through text.
        switch failure.status {
        case .notAvailable, .readOnly, .inputOutput:
            let places = [PrivateFile.directory(of: configuration.storePath), configuration.keyDirectory]
            return places.contains(where: failure.reason.contains) ? failure : failure.naming(configuration.storePath)
        default:
            return failure
        }
    }

    /// The open keychain.
    ///
    /// Throws `.itemNotFound` where there is none and none may be made: then nothing was ever stored.
    func open(creating: Bool) throws(KeychainFailure) -> Opened {
        if let current = opened.withLock({ $0 }) { return current }
        // Opening reads files and may make a store, so it runs outside the lock; of two at once, one result is kept.
        let fresh: Opened
        do throws(KeychainFailure) {
            fresh = try KeychainOpening(configuration: configuration, entitlements: entitlements).run(creating: creating)
        } catch {
            throw naming(error)
        }
        return opened.withLock { opened in
            if let winner = opened { return winner }
            opened = fresh
            return fresh
        }
    }

    /// Lets go of what failed, and of nothing that another thread has opened in its place since.
    private func close(_ failed: Opened) {
        opened.withLock { opened in
            if opened?.store === failed.store { opened = nil }
        }
        failed.store.close()
    }

    deinit {
        opened.withLock { $0?.store.close() }
    }
}
