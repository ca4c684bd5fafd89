// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainStore

/// The way from a configuration to an open keychain, and the making of a new one.
///
/// Order of making: device secret (flushed, under a provisional name), then the store with its keybag (published whole),
/// then the device secret's final name. Dying anywhere in between leaves either no keychain or a complete one.
struct KeychainOpening {
    let configuration: KeychainConfiguration
    let entitlements: Entitlements

    private var keyFile: KeyFile {
        KeyFile(directory: configuration.keyDirectory, storePath: configuration.storePath)
    }

    private var credential: SystemdCredential {
        SystemdCredential(credentialsDirectory: configuration.credentialsDirectory)
    }

    func run(creating: Bool) throws(KeychainFailure) -> OpenedKeychain<SQLiteItemStore> {
        if try isStorePresent() { return try openExisting() }
        if let orphan = try keyFile.orphanPath() {
            // The store may have been published, and its key file named, after the first look.
            if try isStorePresent() { return try openExisting() }
            throw storeLost(orphan)
        }
        guard creating else { throw KeychainFailure(.itemNotFound, "there is no keychain yet, so no item") }
        // Another process may be making one too: the slower one opens what the faster one has made.
        try make()
        return try openExisting()
    }

    private func isStorePresent() throws(KeychainFailure) -> Bool {
        try SQLiteItemStore.inspect(configuration.storePath, fileSystem: configuration.storeOptions.fileSystem) == .present
    }

    private func openExisting() throws(KeychainFailure) -> OpenedKeychain<SQLiteItemStore> {
        let store = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        let stored = try store.keybag()
        let lockEpochs = LockEpochReader(store, configuration: configuration)
        let holder = try configuration.keyHolder.makeHolder(
            storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try lockEpochs.lockEpoch() })
        let (keybag, protector) = try openKeybag(stored, storeID: store.storeID, holder: holder)
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemClock(), entitlements: entitlements,
            log: EngineLog.warn
        )
        let isCurrent = stored.generation == keybag.keybagGeneration
        if !isCurrent { EngineLog.warn("the keybag of \(configuration.storePath) is damaged: items can be read, not written") }
        return OpenedKeychain<SQLiteItemStore>(
            store: store, keybag: keybag, keychain: keychain, protector: protector, holder: holder, isKeybagCurrent: isCurrent)
    }

    /// What a keybag says about its protector cannot be authenticated before the protector gave its secret; a wrong word
    /// there only ends in a keybag that does not open.
    private func openKeybag(
        _ stored: StoredKeybag, storeID: StoreID, holder: any KeyHolder
    ) throws(KeychainFailure) -> (OpenKeybag, any DeviceProtector) {
        var failure = KeychainFailure(.notAvailable, "both copies of the keybag are damaged; nothing was changed", isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            let protector = protector(of: hint.kind)
            do throws(KeychainFailure) {
                let secret = try protector.deviceSecret(for: storeID)
                do throws(KeychainFailure) {
                    return (
                        try OpenKeybag(
                            copies: stored.copies, storeID: storeID, deviceSecret: secret, holder: holder,
                            // A policy that cannot be read stops nobody from opening: it is read again where a passcode is set.
                            applicationPasswordCost: (try? configuration.passcodeRules().cost) ?? .standard), protector
                    )
                } catch {
                    throw error.naming("with the device secret of \(protector.location(for: storeID))")
                }
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private func protector(of kind: DeviceProtectorKind) -> any DeviceProtector {
        switch kind {
        case .keyFile: keyFile
        case .systemdCredential: credential
        }
    }

    /// A key file says that its store was here, and there is none: it was lost, and a new one would hide that.
    private func storeLost(_ orphan: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "the keychain \(configuration.storePath) is gone, but its key file \(orphan) is there: restore the keychain, or move the key file away to start anew"
        )
    }

    private func protectorForNewStore() throws(KeychainFailure) -> DeviceProtectorKind {
        if let kind = configuration.protectorForNewStore { return kind }
        return try credential.isPresent() ? .systemdCredential : .keyFile
    }

    private func make() throws(KeychainFailure) {
        let storeID = StoreID.random()
        switch try protectorForNewStore() {
        case .systemdCredential:
            _ = try makeStore(storeID, deviceSecret: try credential.deviceSecret(for: storeID), protector: .systemdCredential)
        case .keyFile:
            let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
            try PrivateDirectory.make(configuration.keyDirectory)
            try keyFile.prepare(secret, for: storeID)
            let outcome: CreationOutcome
            do throws(KeychainFailure) {
                outcome = try makeStore(storeID, deviceSecret: secret, protector: .keyFile)
            } catch {
                // A store that was published before the failure needs its secret; whoever opens it finishes what is left.
                if (try? isStorePresent()) == false { keyFile.discard(for: storeID) }
                throw error
            }
            switch outcome {
            case .created: try keyFile.confirm(for: storeID)
            case .alreadyThere: keyFile.discard(for: storeID)
            }
        }
    }

    private func makeStore(
        _ storeID: StoreID, deviceSecret: borrowing SecretBytes, protector: DeviceProtectorKind
    ) throws(KeychainFailure) -> CreationOutcome {
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret, protector: KeybagDocument.ProtectorRecord(kind: protector))
        return try SQLiteItemStore.create(
            at: configuration.storePath, storeID: storeID, keybag: document.encoded, generation: document.generation,
            options: configuration.storeOptions)
    }
}
