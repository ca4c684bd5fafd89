// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainStore
internal import KeychainSystem

/// Checks that only this device can have written the content of a copy of a keychain.
struct CopyCheck {
    let configuration: KeychainConfiguration
    let entitlements: Entitlements

    struct Findings {
        let storeID: StoreID
        /// The cipher of the copy's state.
        let stateCipher: any StateCipher
        /// The keybag of the copy.
        let keybag: KeybagDocument
        /// Whether it is the one that was stored last, as far as the anchors show.
        let hasNewestKeybag: Bool
        /// Whether more changes are missing than those that the copy is known to lack.
        var isOlder = false
        /// Whether the keybag of the copy is not the one that was stored last.
        var isKeybagReplaced = false
        /// What is wrong with the keys and the structure of the file.
        var problems: [String] = []
        /// How many rows were authenticated.
        var itemCount = 0
        var damagedItemCount = 0
    }

    /// Throws the errors of opening the copy, with `isDamage` if a part of it cannot be read.
    ///
    /// `missingChangeCount` is the number of changes that the copy is known to lack, for a copy that is about to replace the newest content.
    func findings(inCopyAt path: String, missingChangeCount: Int = 0) throws(KeychainFailure) -> Findings {
        let store = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        defer { store.close() }
        let structuralCount = try store.integrityProblems().count
        let stored = try store.keybag()
        let keybag = try openKeybag(stored, storeID: store.storeID)
        var findings = Findings(
            storeID: store.storeID, stateCipher: keybag.stateCipher, keybag: keybag.document,
            hasNewestKeybag: try hasNewestKeybag(store, keybag))
        if structuralCount > 0 {
            let problems = structuralCount == 1 ? "1 problem" : "\(structuralCount) problems"
            findings.problems.append("\(problems) in the structure of the file")
        }
        if keybag.damagedCopyCount > 0 { findings.problems.append("\(keybag.damagedCopyCount) of the copies of the keybag") }
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: entitlements, log: EngineLog.warn)
        let rows = try keychain.verify(underAnyKeybag: true)
        if let problem = try store.stateProblem(in: keybag.stateCipher, using: keybag.usedCopy) {
            findings.problems.append(problem.description)
        }
        if missingChangeCount > 0 {
            findings.isOlder = try !store.isNewest(
                except: missingChangeCount, with: keybag.stateCipher, anchorsIn: configuration.keyDirectory)
            findings.isKeybagReplaced = !findings.hasNewestKeybag
        }
        findings.itemCount = rows.checkedCount
        findings.damagedItemCount = rows.findings.count + rows.damagedPageRowCount
        return findings
    }

    /// What is known of the store that a copy is about to replace.
    struct PresentStore {
        let storeID: StoreID
        /// Its keybag, if it can be opened and is the one that was stored last.
        let newestKeybag: KeybagDocument?
        /// The number of its changes; 0 if its state is not authentic.
        let changeCount: UInt64
    }

    /// Returns what is known of the store; nil if there is none, or if it is damaged.
    ///
    /// `cipher` is that of the store's state. Throws the errors of opening the store: what could not be looked at is not taken for damaged.
    func presentStore(at path: String, _ cipher: any StateCipher) throws(KeychainFailure) -> PresentStore? {
        do throws(KeychainFailure) {
            guard try SQLiteItemStore.inspect(path, fileSystem: configuration.storeOptions.fileSystem) == .present else { return nil }
            let store = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
            defer { store.close() }
            return PresentStore(
                storeID: store.storeID, newestKeybag: try newestKeybag(of: store), changeCount: try store.changeCount(in: cipher) ?? 0)
        } catch {
            guard error.isOfDamagedStore else { throw error }
            return nil
        }
    }

    private func newestKeybag(of store: SQLiteItemStore) throws(KeychainFailure) -> KeybagDocument? {
        let stored = try store.keybag()
        // Not opened, for example because the credential of its protector is not there: then the anchors tell whether it is another one.
        guard let keybag = try? openKeybag(stored, storeID: store.storeID), try hasNewestKeybag(store, keybag) else { return nil }
        return keybag.document
    }

    private func hasNewestKeybag(_ store: SQLiteItemStore, _ keybag: OpenKeybag) throws(KeychainFailure) -> Bool {
        try store.hasNewestKeybag(keybag.document.encoded, with: keybag.stateCipher, anchorsIn: configuration.keyDirectory)
    }

    /// Makes the state of a checked copy, which is about to replace the store, newer than every state of the store.
    ///
    /// So no anchor makes the copy look rolled back: not those of other names of the store, nor one that a process writes only after the
    /// replacement.
    ///
    /// - Parameters:
    ///   - path: The path of the copy.
    ///   - findings: What the check of the copy has found.
    ///   - changeCount: The number of changes of the store, as far as it is known besides the anchors.
    /// - Returns: The change count of the copy.
    /// - Throws: The errors of opening the copy and of writing to it.
    @discardableResult
    func makeNewest(copyAt path: String, _ findings: Findings, replacing changeCount: UInt64 = 0) throws(KeychainFailure) -> UInt64 {
        let anchored = SQLiteItemStore.greatestAnchoredChangeCount(of: findings.storeID, in: configuration.keyDirectory)
        let copy = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        defer { copy.close() }
        return try copy.beginSeries(with: findings.stateCipher, replacing: max(changeCount, anchored))
    }

    /// Opens the keybag without a key holder: the tags of rows need no class key.
    private func openKeybag(_ stored: StoredKeybag, storeID: StoreID) throws(KeychainFailure) -> OpenKeybag {
        var failure = KeychainFailure(
            .notAvailable, "both copies of the keybag are damaged", subject: .keybag, cause: .damaged, isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            do throws(KeychainFailure) {
                let protector = try ProtectorSelection(configuration: configuration).protector(of: hint, holder: NoKeyHolder())
                let keybagOf = { (secret: borrowing SecretBytes) throws(KeychainFailure) in
                    try OpenKeybag(copies: stored.copies, storeID: storeID, deviceSecret: secret)
                }
                if let keyFile = protector as? KeyFile { return try keyFile.openingCopy(of: storeID, keybagOf) }
                return try keybagOf(try protector.deviceSecret(for: storeID))
            } catch {
                failure = error
            }
        }
        throw failure
    }
}

/// A key holder without keys, so that the check of a copy does not affect the held keys of the keychain.
private struct NoKeyHolder: KeyHolder {
    var kind: KeyHolderKind { .processMemory }

    func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder { self }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) throws(KeychainFailure) -> HeldSecret? { nil }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        throw KeychainFailure(.notAvailable, "nothing is held for a copy")
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {}

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
}
