// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Gets the key of a constraint record's root with what is at hand.
struct ConstraintOpening {
    let storeID: StoreID
    let keys: ConstraintKeys

    /// The key of the record's root.
    ///
    /// Throws a failure that needs what is not at hand, or not right; `.decode` when the record was altered, or sealed to another
    /// presence key pair than the keybag's; `.authFailed` where nobody here could ever satisfy it.
    func key(of record: ConstraintRecord) throws(KeychainFailure) -> SharedSecretBytes {
        switch record {
        case .presence(_, let sealedKey): return try presenceKey(sealedKey)
        case .applicationPassword(let password): return try passwordKey(password)
        case .unreleased:
            throw KeychainFailure(
                .authFailed, "the item needs biometry, which releases no key here", refusal: .biometryNotAvailable)
        case .any(let branches): return try anyKey(branches)
        case .all(let records): return try allKey(records)
        }
    }

    private func presenceKey(_ sealedKey: [UInt8]) throws(KeychainFailure) -> SharedSecretBytes {
        guard let presence = keys.presence else { throw .needing(AuthenticationNeeds(passcodeFor: [])) }
        guard let key = try SealedBox.open(sealedKey, with: presence.privateKey, .presence, storeID: storeID) else {
            throw KeychainFailure(.decode, "the item's access control was altered, or belongs to a passcode that was removed")
        }
        return SharedSecretBytes(key)
    }

    private func passwordKey(_ record: ConstraintRecord.PasswordRecord) throws(KeychainFailure) -> SharedSecretBytes {
        guard let password = keys.applicationPassword else { throw .needing(AuthenticationNeeds(applicationPassword: .missing)) }
        guard let cost = PasscodeCost(encoded: record.cost) else {
            throw KeychainFailure(.decode, "the item names a cost of its password that is refused: too low or too high")
        }
        let derivation = ApplicationPasswordKeys(storeID: storeID, cost: cost)
        guard let key = try derivation.key(from: password, record) else {
            throw .needing(AuthenticationNeeds(applicationPassword: .wrong))
        }
        return key
    }

    /// By the first branch that opens; if none does, what the first that could open needs.
    private func anyKey(_ branches: [ConstraintRecord.Branch]) throws(KeychainFailure) -> SharedSecretBytes {
        var failure: KeychainFailure?
        for branch in branches {
            guard let wrappedKey = branch.wrappedKey else { continue }
            do throws(KeychainFailure) {
                let branchKey = try key(of: branch.record)
                guard let key = KeyWrapping.unwrap(wrappedKey, under: branchKey.secret) else {
                    throw KeychainFailure(.decode, "the item's access control was altered")
                }
                return SharedSecretBytes(try SecretBytes(copying: key))
            } catch {
                failure = failure ?? error
            }
        }
        throw failure ?? KeychainFailure(.authFailed, "nothing here releases the item's key", refusal: .biometryNotAvailable)
    }

    /// All of them; what is missing is asked for together.
    private func allKey(_ records: [ConstraintRecord]) throws(KeychainFailure) -> SharedSecretBytes {
        var found: [SharedSecretBytes] = []
        var needs = AuthenticationNeeds()
        for record in records {
            do throws(KeychainFailure) {
                found.append(try key(of: record))
            } catch {
                guard let missing = error.needs else { throw error }
                needs.formUnion(missing)
            }
        }
        guard needs.isEmpty else { throw .needing(needs) }
        return try ConstraintSealing.combined(found, storeID: storeID)
    }
}
