// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// A store that is made of what another keeper of the keychain hands over.
///
/// The rows and the keybag are inserted as they are. The store is new: its structure, its state, and its anchors are its own, so no file of
/// another user is ever opened as a database.
package final class KeychainImport {
    private let keychain: LocalKeychain
    private let generation: UInt64
    let configuration: KeychainConfiguration

    /// Creates the store without rows, with the device secret in a key file.
    ///
    /// Throws `.decode` if the keybag is not authentic, or belongs to another protector or store, and the errors of creating the store.
    package init(_ keys: KeychainKeys, configuration: KeychainConfiguration) throws(KeychainFailure) {
        self.configuration = configuration
        generation = keys.keybagGeneration
        let keybag: OpenKeybag
        do throws(KeychainFailure) {
            keybag = try OpenKeybag(copies: [keys.keybag], storeID: keys.storeID, deviceSecret: keys.deviceSecret.secret)
        } catch {
            throw Self.unusable
        }
        guard keybag.document.generation == keys.keybagGeneration, keybag.document.protector.kind == .keyFile else { throw Self.unusable }
        let keyFile = KeyFile(directory: configuration.keyDirectory, storePath: configuration.storePath)
        try keyFile.createDirectory()
        try keyFile.prepare(keys.deviceSecret.secret, for: keys.storeID)
        let state = StoreState.initial(keybagDigest: keybag.stateCipher.digest(ofKeybag: keys.keybag))
        let outcome = try SQLiteItemStore.create(
            at: configuration.storePath, storeID: keys.storeID, keybag: keys.keybag, generation: keys.keybagGeneration,
            state: keybag.stateCipher.seal(state), options: configuration.storeOptions)
        guard outcome == .created else {
            keyFile.discard(for: keys.storeID)
            throw KeychainFailure(.duplicateItem, "there is a keychain at \(configuration.storePath)", path: configuration.storePath)
        }
        try keyFile.confirm(for: keys.storeID)
        keychain = LocalKeychain(configuration: configuration, entitlements: Entitlements(applicationIdentifier: ""))
    }

    private static var unusable: KeychainFailure {
        KeychainFailure(.decode, "the keybag that was handed over is not authentic", subject: .keybag, cause: .malformed)
    }

    /// Inserts rows behind those that the store has, in one transaction.
    package func insert(_ rows: [HandedOverRow]) throws(KeychainFailure) {
        try keychain.perform(creating: false) { opened throws(KeychainFailure) in
            let outcome = try opened.store.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
                for row in rows { try Self.insert(row, writing) }
            }
            guard case .written = outcome else { throw SealedKeychain.keybagChanged }
        }
    }

    private static func insert(_ handedOver: HandedOverRow, _ writing: any ItemWriting) throws(KeychainFailure) {
        try writing.insert(handedOver.row)
        guard let seconds = handedOver.quarantineSeconds else { return }
        var number: Int64?
        try writing.forEachRow(matching: RowQuery(id: handedOver.row.header.reference.id), includingSecrets: false) { row in
            number = row.number
            return .stop
        }
        guard let number else { throw KeychainFailure(.internal, "a row that was inserted is not there") }
        try writing.quarantine(number: number, at: seconds)
    }

    /// Calls `body` with each row of the store, in the order of their insertion.
    package func forEachRow(_ body: (HandedOverRow) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try keychain.forEachHandedOverRow(body)
    }

    /// Closes the store, whose content is then in one file, and flushes its directory.
    package func close() throws(KeychainFailure) {
        keychain.closeCurrent()
        let path = configuration.storePath
        for suffix in ["-wal", "-journal"] where try FileStatus.ifPresent(at: path + suffix).map({ $0.byteCount > 0 }) ?? false {
            throw KeychainFailure(.notAvailable, "the copy \(path) is used by another program", path: path, subject: .store)
        }
        do throws(Errno) {
            try FileSystem.flush(path)
            try FileSystem.flush(FileSystem.parent(of: path))
        } catch {
            throw FileSystem.creationFailure(error, in: FileSystem.parent(of: path))
        }
    }
}

extension LocalKeychain {
    /// Returns what opens the keychain, without its rows.
    ///
    /// Throws `.unimplemented` if it cannot be handed over: while synchronization is on, and with another protector than a key file.
    package func keysForHandover() throws(KeychainFailure) -> KeychainKeys {
        try performOnCurrentKeybag { opened throws(KeychainFailure) in try opened.keysForHandover() }
    }

    /// Calls `body` with each row, in the order in which another store inserts them.
    package func forEachHandedOverRow(_ body: (HandedOverRow) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try opened.store.read { reading throws(KeychainFailure) in try HandedOverRow.forEach(in: reading, body) }
        }
    }
}

extension OpenKeychain {
    func keysForHandover() throws(KeychainFailure) -> KeychainKeys {
        guard try !fileStore().isSynchronizing() else {
            throw KeychainFailure(
                .unimplemented,
                "this keychain is synchronized, which keychaind does not do: leave the circle with `valet sync leave` first, and nothing is lost"
            )
        }
        guard protector.kind == .keyFile, let keybagCopy = keybag.usedCopy.copies.first else {
            throw KeychainFailure(
                .unimplemented,
                "the protector of this keychain is \(protector.kind.name), which keychaind cannot use: run `valet protector set keyFile` first"
            )
        }
        return KeychainKeys(
            storeID: keybag.storeID, keybag: keybagCopy, keybagGeneration: keybag.keybagGeneration,
            deviceSecret: SharedSecretBytes(try deviceSecret()))
    }
}
