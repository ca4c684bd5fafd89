// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

extension KeybagDocument {
    /// Whether a recovery key opens it.
    package var hasRecoveryKey: Bool { content.recovery != nil }

    /// The device secret that the copies of a store's keybag give for a recovery key.
    ///
    /// Nothing here is authentic yet: what is found proves or refutes the keybag, as that of a protector does. Throws `.authFailed`
    /// when the key is not this keychain's, `.notAvailable` when no copy knows of one.
    package static func deviceSecret(
        in unauthenticatedCopies: [[UInt8]], openedBy key: RecoveryKey, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        var isAnyThere = false
        var failure: KeychainFailure?
        for copy in newestFirst(unauthenticatedCopies) {
            let record: RecoveryRecord
            do throws(KeychainFailure) {
                guard let field = try hint(.recovery, in: copy) else { continue }
                record = try RecoveryRecord(encoded: field)
            } catch {
                failure = error
                continue
            }
            isAnyThere = true
            let secret = try record.deviceSecret(openedBy: key, storeID: storeID)
            switch consume secret {
            case .some(let secret): return secret
            case .none: continue
            }
        }
        guard isAnyThere else {
            if let failure { throw failure }
            throw KeychainFailure(
                .notAvailable, "this keychain has no recovery key, or what it keeps for it is damaged; nothing was changed")
        }
        throw notItsRecoveryKey()
    }

    static func notItsRecoveryKey() -> KeychainFailure {
        KeychainFailure(.authFailed, "this is not the recovery key of this keychain: it is another one's, or a later one took its place")
    }
}
