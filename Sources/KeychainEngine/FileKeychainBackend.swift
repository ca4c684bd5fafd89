// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainStore
internal import KeychainSystem
internal import Synchronization

/// The way from a configuration to an open keychain, and the making of a new one.
///
/// Order of making: device secret (flushed, under a provisional name), then the store with its keybag (published whole),
/// then the device secret's final name. Dying anywhere in between leaves either no keychain or a complete one.
struct FileKeychainBackend {
    let configuration: KeychainConfiguration
    let entitlements: Entitlements

    private var protectors: ProtectorSelection { ProtectorSelection(configuration: configuration) }
    private var keyFile: KeyFile { protectors.keyFile }

    /// How often a keybag that others change is read anew.
    private static let attemptLimit = 8

    func run(creating: Bool) throws(KeychainFailure) -> OpenKeychain<SQLiteItemStore> {
        if try isStorePresent() { return try openExisting() }
        if let orphan = try keyFile.orphanPath() {
            // The store may have been published, and its key file named, after the first look.
            if try isStorePresent() { return try openExisting() }
            throw missingStoreFailure(orphan)
        }
        guard creating else { throw KeychainFailure(.itemNotFound, "there is no keychain yet, so no item") }
        // Another process may be making one too: the slower one opens what the faster one has made.
        try make()
        return try openExisting()
    }

    private func isStorePresent() throws(KeychainFailure) -> Bool {
        try SQLiteItemStore.inspect(configuration.storePath, fileSystem: configuration.storeOptions.fileSystem) == .present
    }

    private func openExisting() throws(KeychainFailure) -> OpenKeychain<SQLiteItemStore> {
        let store = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        let holder = try makeHolder(for: store)
        var stored = try store.keybag()
        for _ in 1..<Self.attemptLimit {
            do throws(KeychainFailure) {
                let (keybag, protector) = try openKeybag(stored, storeID: store.storeID, holder: holder)
                return opened(store, stored, keybag, protector, holder)
            } catch {
                // Another process may have moved the keychain to another protector since, and taken the old one away.
                let present = try store.keybag()
                guard present.generation != stored.generation else { throw error }
                stored = present
            }
        }
        let (keybag, protector) = try openKeybag(stored, storeID: store.storeID, holder: holder)
        return opened(store, stored, keybag, protector, holder)
    }

    /// The keychain as a recovery key opens it, its protector left aside.
    ///
    /// Throws `.itemNotFound` where there is none, and what `KeybagDocument.deviceSecret` throws.
    func openForRecovery(_ key: RecoveryKey) throws(KeychainFailure) -> OpenKeychain<SQLiteItemStore> {
        guard try isStorePresent() else { throw KeychainFailure(.itemNotFound, "there is no keychain, so nothing to recover") }
        let store = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        let holder = try makeHolder(for: store)
        let stored = try store.keybag()
        let secret = try KeybagDocument.deviceSecret(in: stored.copies, openedBy: key, storeID: store.storeID)
        let keybag = try keybag(stored, storeID: store.storeID, secret, holder)
        let protector = RecoveredDeviceSecret(kind: keybag.document.protector.kind, secret: SharedSecretBytes(secret))
        return opened(store, stored, keybag, protector, holder)
    }

    private func makeHolder(for store: SQLiteItemStore) throws(KeychainFailure) -> any KeyHolder {
        let lockEpochs = LockEpochReader(store, configuration: configuration)
        return try configuration.keyHolder.makeHolder(
            storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try lockEpochs.lockEpoch() })
    }

    private func opened(
        _ store: SQLiteItemStore, _ stored: StoredKeybag, _ keybag: OpenKeybag, _ protector: any DeviceProtector, _ holder: any KeyHolder
    ) -> OpenKeychain<SQLiteItemStore> {
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: entitlements,
            log: EngineLog.warn
        )
        let isCurrent = stored.generation == keybag.keybagGeneration
        if !isCurrent { EngineLog.warn("the keybag of \(configuration.storePath) is damaged: items can be read, not written") }
        return OpenKeychain<SQLiteItemStore>(
            store: store, keybag: keybag, keychain: keychain, protector: protector, holder: holder, isKeybagCurrent: isCurrent)
    }

    /// What a keybag says about its protector cannot be authenticated before the protector gave its secret; a wrong word
    /// there only ends in a keybag that does not open.
    private func openKeybag(
        _ stored: StoredKeybag, storeID: StoreID, holder: any KeyHolder
    ) throws(KeychainFailure) -> (OpenKeybag, any DeviceProtector) {
        var failure = KeychainFailure(.notAvailable, "both copies of the keybag are damaged; nothing was changed", isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            do throws(KeychainFailure) {
                let protector = try protectors.protector(of: hint, holder: holder)
                if let tpm = protector as? TPMProtector {
                    return (try keybag(stored, storeID: storeID, tpm, holder), tpm)
                }
                let secret = try protector.deviceSecret(for: storeID)
                return (try keybag(stored, storeID: storeID, secret, holder, of: protector), protector)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// The chip is asked only when what is held does not open the keybag, and gives what is held from then on.
    private func keybag(
        _ stored: StoredKeybag, storeID: StoreID, _ tpm: TPMProtector, _ holder: any KeyHolder
    ) throws(KeychainFailure) -> OpenKeybag {
        switch tpm.heldSecret(for: storeID) {
        case .none: break
        case .some(let held):
            do throws(KeychainFailure) {
                return try keybag(stored, storeID: storeID, HeldDeviceSecret.secret(in: held.secret, of: storeID), holder)
            } catch {
                // That of another keybag; if the keybag itself is to blame, it says so again below.
                holder.discard(.device, ticket: held.ticket)
            }
        }
        let secret = try tpm.unsealedSecret()
        let keybag = try keybag(stored, storeID: storeID, secret, holder, of: tpm)
        TPMProtector.hold(secret, of: storeID, in: holder)
        return keybag
    }

    private func keybag(
        _ stored: StoredKeybag, storeID: StoreID, _ secret: borrowing SecretBytes, _ holder: any KeyHolder,
        of protector: (any DeviceProtector)? = nil
    ) throws(KeychainFailure) -> OpenKeybag {
        do throws(KeychainFailure) {
            return try OpenKeybag(
                copies: stored.copies, storeID: storeID, deviceSecret: secret, holder: holder,
                // A policy that cannot be read stops nobody from opening: it is read again where a passcode is set.
                applicationPasswordCost: (try? configuration.passcodePolicy().cost) ?? .standard)
        } catch {
            guard let protector else { throw error }
            throw error.prefixed(by: "with the device secret of \(protector.location(for: storeID))")
        }
    }

    /// A key file says that its store was here, and there is none: it was lost, and a new one would hide that.
    private func missingStoreFailure(_ orphan: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "the keychain \(configuration.storePath) is gone, but its key file \(orphan) is there: restore the keychain, or move the key file away to start anew"
        )
    }

    private func protectorForNewStore() throws(KeychainFailure) -> DeviceProtectorKind {
        if let kind = configuration.protectorForNewStore { return kind }
        return try protectors.credential.isPresent() ? .systemdCredential : .keyFile
    }

    private func make() throws(KeychainFailure) {
        let storeID = StoreID.random()
        let kind = try protectorForNewStore()
        let new = try protectors.newSecret(kind, for: storeID)
        guard kind == .keyFile else {
            let outcome = try makeStore(storeID, new)
            if kind == .tpm2, outcome == .created {
                EngineLog.warn("the new keychain opens with this TPM alone and has no recovery key: make one with `valet recovery create`")
            }
            return
        }
        try FileSystem.createPrivateDirectories(configuration.keyDirectory)
        try keyFile.prepare(new.shared.secret, for: storeID)
        let outcome: CreationOutcome
        do throws(KeychainFailure) {
            outcome = try makeStore(storeID, new)
        } catch {
            // A store that was published before the failure needs its secret; whoever opens it finishes what is left.
            if (try? isStorePresent()) == false { keyFile.discard(for: storeID) }
            throw error
        }
        switch outcome {
        case .created: try keyFile.confirm(for: storeID)
        case .alreadyExists: keyFile.discard(for: storeID)
        }
    }

    private func makeStore(_ storeID: StoreID, _ new: NewDeviceSecret) throws(KeychainFailure) -> CreationOutcome {
        let document = try OpenKeybag.make(storeID: storeID, deviceSecret: new.shared.secret, protector: new.record)
        return try SQLiteItemStore.create(
            at: configuration.storePath, storeID: storeID, keybag: document.encoded, generation: document.generation,
            options: configuration.storeOptions)
    }
}

/// Reads a store's count of locks for a key holder.
///
/// Through the open store as long as that is open, and then through one of its own: what is held in a process's memory outlives the
/// keychain object that unlocked it.
final class LockEpochReader: Sendable {
    private let configuration: KeychainConfiguration
    private let storeID: StoreID
    private let own = Mutex<SQLiteItemStore?>(nil)
    private let shared: SQLiteItemStore

    init(_ store: SQLiteItemStore, configuration: KeychainConfiguration) {
        shared = store
        storeID = store.storeID
        self.configuration = configuration
    }

    deinit {
        own.withLock { $0?.close() }
    }

    /// Throws what opening and reading the store throw, and `.notAvailable` when another store is in its place.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        do throws(KeychainFailure) {
            return try Self.lockEpoch(of: shared)
        } catch {
            guard error.requiresReopening else { throw error }
        }
        do throws(KeychainFailure) {
            return try Self.lockEpoch(of: try ownStore())
        } catch {
            guard error.requiresReopening else { throw error }
            closeOwn()
        }
        return try Self.lockEpoch(of: try ownStore())
    }

    private static func lockEpoch(of store: SQLiteItemStore) throws(KeychainFailure) -> LockEpoch {
        try store.read { reading throws(KeychainFailure) in try reading.lockEpoch() }
    }

    private func ownStore() throws(KeychainFailure) -> SQLiteItemStore {
        if let store = own.withLock({ $0 }) { return store }
        let fresh = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        guard fresh.storeID == storeID else {
            fresh.close()
            throw KeychainFailure(.notAvailable, "another store has taken the place of the one that was unlocked")
        }
        own.withLock { $0 = fresh }
        return fresh
    }

    private func closeOwn() {
        own.withLock { store in
            store?.close()
            store = nil
        }
    }
}
