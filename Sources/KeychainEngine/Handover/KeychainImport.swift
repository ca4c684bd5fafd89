// SPDX-License-Identifier: Apache-2.0
package import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// A store that is made of what another keeper of the keychain hands over.
///
/// The rows and the keybag are inserted as they are. The store is new: its structure and its state are its own, so no file of another user is ever
/// opened as a database. Its keys are in the memory of this process alone until `storeKeyFile`: an unfinished copy opens nothing.
package final class KeychainImport {
    private let keys: KeychainKeys
    private let configuration: KeychainConfiguration
    private let store: SQLiteItemStore
    /// The most that a password of an item may cost.
    private let largestCost: PasscodeCost?

    /// Creates the store without rows.
    ///
    /// `largestCost` limits the passcode and the passwords of items; nil: as the format does. Throws as `requireAcceptable` does, `.duplicateItem` if
    /// there is a store, and the errors of creating one.
    package init(
        _ keys: KeychainKeys, configuration: KeychainConfiguration, largestCost: PasscodeCost? = nil
    ) throws(KeychainFailure) {
        self.keys = keys
        self.configuration = configuration
        self.largestCost = largestCost
        let path = configuration.storePath
        let new = try Self.open(keys)
        try Self.require(new.passcodeCost, for: "passcode", atMost: largestCost)
        let state = StoreState.initial(keybagDigest: new.stateCipher.digest(ofKeybag: keys.keybag))
        let outcome = try SQLiteItemStore.create(
            at: path, storeID: keys.storeID, keybag: keys.keybag, generation: keys.keybagGeneration,
            state: new.stateCipher.seal(state), options: configuration.storeOptions)
        guard outcome == .created else { throw KeychainFailure(.duplicateItem, "there is a keychain at \(path)", path: path) }
        store = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        let stored = try store.keybag()
        let keybag = try Self.open(keys, copies: stored.copies)
        try store.protect(with: keybag.stateCipher, rowCipher: keybag.cipher, using: keybag.usedCopy, anchorPaths: [])
    }

    deinit { store.close() }

    /// Checks the keybag that is handed over.
    ///
    /// Throws `.decode` if it is not authentic, or belongs to another protector or store, and `.notAvailable` with the cause `.costRefused` if its
    /// passcode costs more than `largestCost`.
    package static func requireAcceptable(_ keys: KeychainKeys, largestCost: PasscodeCost) throws(KeychainFailure) {
        try require(try open(keys).passcodeCost, for: "passcode", atMost: largestCost)
    }

    private static func require(_ cost: PasscodeCost?, for secret: String, atMost largest: PasscodeCost?) throws(KeychainFailure) {
        guard let cost, let largest, cost.exceeds(largest) else { return }
        let times = cost.parallelism == 1 ? "" : ", \(cost.parallelism) times"
        throw KeychainFailure(
            .notAvailable,
            "checking the \(secret) needs \(cost.memoryByteCount >> 20) MiB of memory\(times), and keychaind uses at most "
                + "\(largest.memoryByteCount >> 20) MiB, once: set the \(secret) again, or let the administrator raise passcodeMemoryMiB in "
                + PasscodePolicy.systemPath,
            subject: .keybag, cause: .costRefused)
    }

    private static func open(_ keys: KeychainKeys, copies: [[UInt8]]? = nil) throws(KeychainFailure) -> OpenKeybag {
        let unusable = KeychainFailure(.decode, "the keybag that was handed over is not authentic", subject: .keybag, cause: .malformed)
        let keybag: OpenKeybag
        do throws(KeychainFailure) {
            keybag = try OpenKeybag(copies: copies ?? [keys.keybag], storeID: keys.storeID, deviceSecret: keys.deviceSecret.secret)
        } catch {
            throw unusable
        }
        guard keybag.document.generation == keys.keybagGeneration, keybag.document.protector.kind == .keyFile else { throw unusable }
        return keybag
    }

    /// Inserts rows behind those that the store has, in one transaction.
    package func insert(_ rows: [HandedOverRow]) throws(KeychainFailure) {
        let outcome = try store.write(ifKeybagGeneration: keys.keybagGeneration) { writing throws(KeychainFailure) in
            for row in rows {
                try requireAcceptable(row.row.header)
                try Self.insert(row, writing)
            }
        }
        guard case .written = outcome else { throw SealedKeychain.keybagChanged }
    }

    private func requireAcceptable(_ header: RowHeader) throws(KeychainFailure) {
        guard largestCost != nil, let record = header.constraints.flatMap({ ConstraintRecord(encoded: $0) }) else { return }
        for password in record.passwordRecords {
            try Self.require(PasscodeCost(encoded: password.cost), for: "password of an item", atMost: largestCost)
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
        try store.read { reading throws(KeychainFailure) in try HandedOverRow.forEach(in: reading, body) }
    }

    /// Closes the store, whose content is then in one file, and flushes it.
    package func close() throws(KeychainFailure) {
        store.close()
        let path = configuration.storePath
        // Otherwise a power cut, or moving the file, would lose what SQLite could not move into it.
        for suffix in ["-wal", "-journal"] where try FileStatus.ifPresent(at: path + suffix).map({ $0.byteCount > 0 }) ?? false {
            throw KeychainFailure(
                .notAvailable, "the changes in \(path + suffix) could not be moved to the copy of the keychain: is there free space?",
                path: path, subject: .store)
        }
        do throws(Errno) {
            try FileSystem.flush(path)
            try FileSystem.flush(FileSystem.parent(of: path))
        } catch {
            throw FileSystem.creationFailure(error, in: FileSystem.parent(of: path))
        }
    }

    /// Stores the device secret in the key file of the configuration.
    package func storeKeyFile() throws(KeychainFailure) {
        let keyFile = KeyFile(directory: configuration.keyDirectory, storePath: configuration.storePath)
        try keyFile.createDirectory()
        try keyFile.prepare(keys.deviceSecret.secret, for: keys.storeID)
        try keyFile.confirm(for: keys.storeID)
    }
}
