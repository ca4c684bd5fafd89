// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainStore
internal import KeychainSystem
internal import Synchronization

/// A keychain in a file, with its device secret in a key file, a systemd credential, or a TPM.
///
/// Order of creation: the device secret (flushed, under a provisional name), then the store with its keybag (published atomically), then
/// the final name of the device secret. A crash at any point leaves either no keychain or a complete one.
struct FileKeychainBackend: KeychainBackend {
    let configuration: KeychainConfiguration
    let entitlements: Entitlements

    private var protectors: ProtectorSelection { ProtectorSelection(configuration: configuration) }
    private var keyFile: KeyFile { protectors.keyFile }

    // MARK: KeychainBackend

    var promptSettings: PromptSettings { configuration.promptSettings }

    var newKeychainHolder: KeyHolderKind { configuration.keyHolder.holderKindForNewStore }

    func passcodePolicy() throws(KeychainFailure) -> PasscodePolicy { try configuration.passcodePolicy() }

    func requireProtectorForNewKeychain() throws(KeychainFailure) {
        switch try configuration.newStoreProtector() {
        case .keyFile: try configuration.keyPlacement.requireEqualLifetimes()
        case .systemdCredential: _ = try protectors.credential.deviceSecret(for: .random())
        case .tpm2: _ = try configuration.tpm()
        }
    }

    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        do throws(KeychainFailure) {
            return try openWithoutHandover(creating: creating)
        } catch {
            // An ordinary result, of which programs may have many.
            guard error.status != .itemNotFound else { throw error }
            // keychaind may have taken the keychain over since the store was opened. Then the key file is gone.
            throw SQLiteItemStore.signpostFailure(at: configuration.storePath, options: configuration.storeOptions) ?? error
        }
    }

    private func openWithoutHandover(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        if try isStorePresent() { return try openExisting() }
        if let failure = try failureOfMissingStore() {
            // Another process may have published the store, and named its key file, after the first check.
            if try isStorePresent() { return try openExisting() }
            throw failure
        }
        guard creating else { throw Self.noKeychain }
        // If another process creates one at the same time, the slower process opens the keychain of the faster one.
        try create()
        return try openExisting()
    }

    func close(_ keychain: OpenKeychain) {
        (keychain.store as? SQLiteItemStore)?.close()
    }

    /// The stores are found by the names of their anchors and key files, so nothing is opened that can be damaged.
    ///
    /// The keys of all stores are removed that the names show: the file at the path may be another one than the one that was unlocked. Keys in
    /// the memory of other processes remain.
    func removeHeldKeys(_ extent: LockExtent) -> Bool { removeHeldKeys(extent, of: []) }

    private func removeHeldKeys(_ extent: LockExtent, of opened: Set<StoreID>) -> Bool {
        var isComplete = true
        var ids = opened
        do throws(KeychainFailure) {
            ids.formUnion(try configuration.anchorsOfAnyStore().map(\.storeID))
        } catch {
            isComplete = false
        }
        do throws(KeychainFailure) {
            ids.formUnion(try keyFile.orphanIDs())
        } catch {
            isComplete = false
        }
        let isKeyringUsed =
            configuration.keyHolder != .processMemory && KernelKeyring.refusal == nil && CurrentProcess.isInInitialUserNamespace
        for id in ids {
            var holders: [any KeyHolder] = [
                ProcessMemoryKeyHolder(storeID: id, epochSource: Self.noEpoch, keys: configuration.processKeys)
            ]
            if isKeyringUsed {
                if let kernel = try? KernelKeyHolder(storeID: id) { holders.append(kernel) } else { isComplete = false }
            }
            for holder in holders {
                for slot in extent.slots where (try? holder.remove(slot)) == nil { isComplete = false }
            }
        }
        return isComplete && isKeyringUsed && !ids.isEmpty
    }

    /// The holder is found by the store's identifier, which needs neither the keybag nor the protector.
    func lockWithoutOpening(_ extent: LockExtent) -> Bool {
        var isComplete = true
        var ids: Set<StoreID> = []
        if let store = try? SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions) {
            defer { store.close() }
            if let holder = try? makeHolder(for: store), (try? LocalKeychain.lock(extent, holder, store)) == nil { isComplete = false }
            ids.insert(store.storeID)
        }
        let areRemoved = removeHeldKeys(extent, of: ids)
        return isComplete && areRemoved
    }

    private static var noEpoch: LockEpochSource {
        { () throws(KeychainFailure) in throw KeychainFailure(.notAvailable, "the store cannot be opened", subject: .store) }
    }

    /// SQLite and the keybag do not know the path of the file that they cannot use.
    func addingContext(to failure: KeychainFailure) -> KeychainFailure {
        switch failure.status {
        case .notAvailable, .readOnly, .inputOutput:
            let isAboutStore = failure.subject == nil || failure.subject == .store || failure.subject == .keybag
            // A failure to write an output file is not about the store.
            guard isAboutStore, failure.remedy != .writeElsewhere else { return failure }
            return failure.located(at: configuration.storePath, subject: .store, addsPathToReason: true)
        default:
            return failure
        }
    }

    // MARK: Opening

    private func isStorePresent() throws(KeychainFailure) -> Bool {
        try SQLiteItemStore.inspect(configuration.storePath, fileSystem: configuration.storeOptions.fileSystem) == .present
    }

    /// Opens the store, and unless `acceptingContent` is set, refuses one whose content is not what the keychain wrote last.
    private func openExisting(acceptingContent: Bool = false) throws(KeychainFailure) -> OpenKeychain {
        let store = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        // A mark that cannot be read is beside a key file that cannot be read.
        if (try? KeptMark(configuration).contains(store.storeID)) == true {
            store.close()
            throw keptCopyFailure(store.storeID)
        }
        let holder = try makeHolder(for: store)
        let stored = try store.keybag()
        do throws(KeychainFailure) {
            let (keybag, protector) = try openKeybag(stored, storeID: store.storeID, holder: holder)
            try store.protect(
                with: keybag.stateCipher, rowCipher: keybag.cipher, using: keybag.usedCopy,
                anchorPaths: configuration.anchorPaths(for: store.storeID), checking: acceptingContent ? .nothing : .content)
            return open(store, keybag, protector, holder)
        } catch {
            defer { store.close() }
            // Another process may have moved the keychain to another protector since the keybag was read, and removed the old one.
            guard let present = try? store.keybag(), present.generation != stored.generation else { throw error }
            throw SealedKeychain.keybagChanged
        }
    }

    /// Opens the keychain whatever other programs have done to its content, so that a person can accept it.
    ///
    /// Throws `.itemNotFound` if there is no keychain.
    func openAcceptingContent() throws(KeychainFailure) -> OpenKeychain {
        try requireStore()
        return try openExisting(acceptingContent: true)
    }

    /// Opens the keychain as `openAcceptingContent` does, only to read, and also pages with wrong checksums.
    func openToSave() throws(KeychainFailure) -> OpenKeychain {
        var configuration = configuration
        configuration.storeOptions.verifiesContent = false
        return try FileKeychainBackend(configuration: configuration, entitlements: entitlements).openAcceptingContent()
    }

    /// Opens the keychain with a recovery key instead of its protector.
    ///
    /// Throws `.itemNotFound` if there is no keychain, and the errors of `OpenKeybag.recovering`.
    func openForRecovery(_ key: RecoveryKey, acceptingOlderKeybag: Bool) throws(KeychainFailure) -> OpenKeychain {
        try requireStore()
        let store = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        do throws(KeychainFailure) {
            let holder = try makeHolder(for: store)
            let stored = try store.keybag()
            let recovered = try OpenKeybag.recovering(
                stored.copies, with: key, storeID: store.storeID, holder: holder, applicationPasswordCost: applicationPasswordCost)
            // The new keybag will count as the one stored last. So this one must be that, or a way around a changed passcode opens, unless a
            // person has nothing newer.
            try store.protect(
                with: recovered.keybag.stateCipher, rowCipher: recovered.keybag.cipher, using: recovered.keybag.usedCopy,
                anchorPaths: configuration.anchorPaths(for: store.storeID), checking: acceptingOlderKeybag ? .acceptedKeybag : .keybag)
            let protector = RecoveredDeviceSecret(kind: recovered.keybag.document.protector.kind, secret: recovered.deviceSecret)
            return open(store, recovered.keybag, protector, holder)
        } catch {
            store.close()
            throw error
        }
    }

    /// The cost for new items.
    ///
    /// An unreadable policy does not prevent opening: setting a passcode reads it again.
    private var applicationPasswordCost: PasscodeCost { (try? configuration.passcodePolicy().cost) ?? .standard }

    private func makeHolder(for store: SQLiteItemStore) throws(KeychainFailure) -> any KeyHolder {
        let lockEpochs = LockEpochReader(store, configuration: configuration)
        return try configuration.keyHolder.makeHolder(
            storeID: store.storeID, epochSource: { () throws(KeychainFailure) in try lockEpochs.lockEpoch() },
            processKeys: configuration.processKeys)
    }

    private func open(
        _ store: SQLiteItemStore, _ keybag: OpenKeybag, _ protector: any DeviceProtector, _ holder: any KeyHolder
    ) -> OpenKeychain {
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: entitlements,
            log: EngineLog.warn
        )
        return OpenKeychain(store: store, keybag: keybag, keychain: keychain, protector: protector, holder: holder)
    }

    /// Tries the protectors that the copies of the keybag name.
    ///
    /// That part of the keybag cannot be authenticated without the device secret. If it is wrong, the keybag does not open.
    private func openKeybag(
        _ stored: StoredKeybag, storeID: StoreID, holder: any KeyHolder
    ) throws(KeychainFailure) -> (OpenKeybag, any DeviceProtector) {
        var failure = KeychainFailure(
            .notAvailable, "both copies of the keybag are damaged", subject: .keybag, cause: .damaged, isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            do throws(KeychainFailure) {
                let protector = try protectors.protector(of: hint, holder: holder)
                if let tpm = protector as? TPMProtector {
                    return (try keybag(stored, storeID: storeID, tpm, holder), tpm)
                }
                if let keyFile = protector as? KeyFile {
                    return try keyFile.opening(storeID) { secret throws(KeychainFailure) in
                        try keybag(stored, storeID: storeID, secret, holder, of: keyFile)
                    }
                }
                let secret = try protector.deviceSecret(for: storeID)
                return (try keybag(stored, storeID: storeID, secret, holder, of: protector), protector)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// Uses the held device secret if it opens the keybag; otherwise asks the TPM and holds its answer.
    private func keybag(
        _ stored: StoredKeybag, storeID: StoreID, _ tpm: TPMProtector, _ holder: any KeyHolder
    ) throws(KeychainFailure) -> OpenKeybag {
        switch tpm.heldSecret(for: storeID) {
        case .none: break
        case .some(let held):
            do throws(KeychainFailure) {
                return try keybag(stored, storeID: storeID, held.secret, holder)
            } catch {
                // The held secret may belong to another keybag. If the keybag is damaged, opening fails again below.
                holder.discard(.device, ticket: held.ticket)
            }
        }
        let secret = try tpm.unsealedSecret()
        let keybag = try keybag(stored, storeID: storeID, secret, holder, of: tpm)
        TPMProtector.hold(secret, sealedAs: tpm.sealedSecret, of: storeID, in: holder)
        return keybag
    }

    private func keybag(
        _ stored: StoredKeybag, storeID: StoreID, _ secret: borrowing SecretBytes, _ holder: any KeyHolder,
        of protector: (any DeviceProtector)? = nil
    ) throws(KeychainFailure) -> OpenKeybag {
        do throws(KeychainFailure) {
            return try OpenKeybag(
                copies: stored.copies, storeID: storeID, deviceSecret: secret, holder: holder,
                applicationPasswordCost: applicationPasswordCost)
        } catch {
            guard let protector else { throw error }
            let context = "with the device secret of \(protector.location(for: storeID))"
            // Any 32 bytes are a credential. Damage would show in the checksums of the keybag's pages.
            guard protector.kind == .systemdCredential, error.subject == .keybag, error.cause == .damaged else {
                throw error.addingContext(context)
            }
            throw KeychainFailure(
                .notAvailable,
                "the credential is not that of this keychain, or the keybag was altered: pass the right one, or use the recovery key if one was made",
                subject: .credential, cause: .otherStore
            ).addingContext(context)
        }
    }

    private static var noKeychain: KeychainFailure { KeychainFailure(.itemNotFound, "there is no keychain yet") }

    /// Throws `.itemNotFound` if there is no keychain, and `.notAvailable` if it is gone, or if keychaind keeps it.
    func requireStore() throws(KeychainFailure) {
        guard try !isStorePresent() else { return }
        throw try failureOfMissingStore() ?? Self.noKeychain
    }

    /// Returns the failure for a path without a store at which there was one; nil if there was none.
    private func failureOfMissingStore() throws(KeychainFailure) -> KeychainFailure? {
        if let storeID = try KeptMark(configuration).storeID() {
            return Signpost(storeID: storeID).failure(
                ofOpening: configuration.storePath, shownBy: KeptMark(configuration).path(for: storeID))
        }
        return try traceOfMissingStore().map(missingStoreFailure)
    }

    /// Returns a file that shows that there was a store at the configured path; nil if there is none.
    ///
    /// It is a phrase for people. Not every protector has a key file, so files beside the store and its anchor count too.
    private func traceOfMissingStore() throws(KeychainFailure) -> String? {
        if let path = try keyFile.orphanPath() { return "its key file \(path)" }
        if let path = try SQLiteItemStore.orphanedLogPath(ofStoreAt: configuration.storePath) { return "its file \(path)" }
        let anchors = try configuration.anchorsOfAnyStore()
        let anchor = anchors.first { SQLiteItemStore.hasAcknowledgedChanges(inAnchorAt: $0.path, of: $0.storeID) }
        return anchor.map { "its anchor \($0.path)" }
    }

    /// The failure for a store that is gone while one of its files is there.
    ///
    /// Creating a new store would hide the loss.
    private func missingStoreFailure(_ trace: String) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "the keychain \(configuration.storePath) is gone, but \(trace) is there: restore the keychain, or move that file away to start over",
            path: configuration.storePath, subject: .store, cause: .missing)
    }

    /// The failure for a file that was put in the place of its signpost, for example from a backup.
    private func keptCopyFailure(_ storeID: StoreID) -> KeychainFailure {
        KeychainFailure(
            .notAvailable,
            "keychaind keeps the keychain \(configuration.storePath), says \(KeptMark(configuration).path(for: storeID)), so the file is a former copy: "
                + "move it away with its key file, or remove the mark to use it",
            path: configuration.storePath, subject: .store, cause: .otherStore)
    }

    // MARK: Creating

    private func create() throws(KeychainFailure) {
        let storeID = StoreID.random()
        let kind = try configuration.newStoreProtector()
        if kind == .keyFile { try configuration.keyPlacement.requireEqualLifetimes() }
        let new = try protectors.newSecret(kind, for: storeID)
        guard kind == .keyFile else {
            let outcome = try makeStore(storeID, new)
            if kind == .tpm2, outcome == .created {
                EngineLog.warn("the new keychain opens with this TPM alone and has no recovery key: make one with `valet recovery create`")
            }
            return
        }
        try keyFile.createDirectory()
        try keyFile.prepare(new.shared.secret, for: storeID)
        let outcome: CreationOutcome
        do throws(KeychainFailure) {
            outcome = try makeStore(storeID, new)
        } catch {
            // A store that was published before the failure needs its secret. The next opening completes the creation.
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
        let cipher = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: new.shared.secret).stateCipher
        let state = StoreState.initial(keybagDigest: cipher.digest(ofKeybag: document.encoded))
        return try SQLiteItemStore.create(
            at: configuration.storePath, storeID: storeID, keybag: document.encoded, generation: document.generation,
            state: cipher.seal(state), options: configuration.storeOptions)
    }
}

/// Reads the lock epoch of a store for the thread that watches keys in the memory of this process.
///
/// It reads from the keychain's store while that is open, and then opens the store itself: the keys outlive the `LocalKeychain` that
/// unlocked them.
final class LockEpochReader: Sendable {
    private let configuration: KeychainConfiguration
    private let storeID: StoreID
    private let separateStore = Mutex<SQLiteItemStore?>(nil)
    private let shared: SQLiteItemStore

    init(_ store: SQLiteItemStore, configuration: KeychainConfiguration) {
        shared = store
        storeID = store.storeID
        self.configuration = configuration
    }

    deinit {
        separateStore.withLock { $0?.close() }
    }

    /// Throws the errors of opening and reading the store, and `.notAvailable` if another store is in its place.
    func lockEpoch() throws(KeychainFailure) -> LockEpoch {
        do throws(KeychainFailure) {
            return try shared.lockEpoch()
        } catch {
            guard error.requiresReopening else { throw error }
        }
        do throws(KeychainFailure) {
            return try openSeparateStore().lockEpoch()
        } catch {
            // The next call opens the store again.
            if error.requiresReopening { closeSeparateStore() }
            throw error
        }
    }

    private func openSeparateStore() throws(KeychainFailure) -> SQLiteItemStore {
        if let store = separateStore.withLock({ $0 }) { return store }
        let fresh = try SQLiteItemStore(openingAt: configuration.storePath, options: configuration.storeOptions)
        guard fresh.storeID == storeID else {
            fresh.close()
            throw KeychainFailure(.notAvailable, "the store that was unlocked was replaced by another one")
        }
        separateStore.withLock { $0 = fresh }
        return fresh
    }

    private func closeSeparateStore() {
        separateStore.withLock { store in
            store?.close()
            store = nil
        }
    }
}
