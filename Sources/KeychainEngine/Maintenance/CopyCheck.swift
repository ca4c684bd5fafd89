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
        /// What is wrong with the keys and the structure of the file.
        var problems: [String] = []
        /// How many rows were authenticated.
        var itemCount = 0
        var damagedItemCount = 0
    }

    /// Throws the errors of opening the copy, with `isDamage` if a part of it cannot be read.
    func findings(inCopyAt path: String) throws(KeychainFailure) -> Findings {
        let store = try SQLiteItemStore(openingAt: path, options: configuration.storeOptions)
        defer { store.close() }
        var findings = Findings(storeID: store.storeID)
        let structuralCount = try store.integrityProblems().count
        if structuralCount > 0 { findings.problems.append("\(structuralCount) problems in the structure of the file") }
        let stored = try store.keybag()
        let keybag = try openKeybag(stored, storeID: store.storeID)
        if keybag.damagedCopyCount > 0 { findings.problems.append("\(keybag.damagedCopyCount) of the copies of the keybag") }
        let isCurrent = stored.generation == keybag.keybagGeneration
        if !isCurrent { findings.problems.append("the keybag is not the one stored last") }
        let keychain = SealedKeychain(
            store: store, keys: keybag, cipher: keybag.cipher, clock: SystemWallClock(), entitlements: entitlements, log: EngineLog.warn)
        let rows = try keychain.verify(underAnyKeybag: !isCurrent)
        if let problem = try store.stateProblem(in: keybag.stateCipher) { findings.problems.append(problem.description) }
        findings.itemCount = rows.checkedCount
        findings.damagedItemCount = rows.findings.count + rows.damagedPageRowCount
        return findings
    }

    /// Opens the keybag without a key holder: the tags of rows need no class key.
    private func openKeybag(_ stored: StoredKeybag, storeID: StoreID) throws(KeychainFailure) -> OpenKeybag {
        var failure = KeychainFailure(
            .notAvailable, "both copies of the keybag are damaged; nothing was changed", subject: .keybag, cause: .damaged, isDamage: true)
        for hint in try KeybagDocument.protectorHints(in: stored.copies) {
            do throws(KeychainFailure) {
                let protector = try ProtectorSelection(configuration: configuration).protector(of: hint, holder: NoKeyHolder())
                let secret = try protector.deviceSecret(for: storeID)
                return try OpenKeybag(copies: stored.copies, storeID: storeID, deviceSecret: secret)
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
