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
        if structuralCount > 0 { findings.problems.append("\(structuralCount) problems in the structure of the file") }
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

    /// Returns the keybag of the store, if it can be read and is the one that was stored last.
    func newestKeybag(ofStoreAt path: String) -> KeybagDocument? {
        try? examine(storeAt: path) { store, keybag throws(KeychainFailure) in
            try hasNewestKeybag(store, keybag) ? keybag.document : nil
        }
    }

    /// Whether a store has the content that was stored last, as far as the anchors show; false if it cannot be read.
    func isNewest(storeAt path: String) -> Bool {
        let isNewest = try? examine(storeAt: path) { store, keybag throws(KeychainFailure) in
            try store.isNewest(except: 0, with: keybag.stateCipher, anchorsIn: configuration.keyDirectory)
        }
        return isNewest ?? false
    }

    private func examine<Result>(
        storeAt path: String, _ body: (SQLiteItemStore, OpenKeybag) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let store = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        defer { store.close() }
        return try body(store, openKeybag(try store.keybag(), storeID: store.storeID))
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
    ///   - storePath: The path of the store, if it may be opened.
    /// - Throws: The errors of opening the copy and of writing to it.
    func makeNewest(copyAt path: String, _ findings: Findings, replacing storePath: String? = nil) throws(KeychainFailure) {
        let store = storePath.flatMap { try? SQLiteItemStore(openingAt: $0, options: configuration.storeOptions) }
        let stored = store.flatMap { try? $0.changeCount(in: findings.stateCipher) }
        store?.close()
        let anchored = SQLiteItemStore.greatestAnchoredChangeCount(of: findings.storeID, in: configuration.keyDirectory)
        let copy = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        defer { copy.close() }
        try copy.beginSeries(with: findings.stateCipher, replacing: max(stored ?? 0, anchored))
    }

    /// Opens the keybag without a key holder: the tags of rows need no class key.
    private func openKeybag(_ stored: StoredKeybag, storeID: StoreID) throws(KeychainFailure) -> OpenKeybag {
        var failure = KeychainFailure(
            .notAvailable, "both copies of the keybag are damaged; nothing was changed", subject: .keybag, cause: .damaged, isDamage: true)
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
