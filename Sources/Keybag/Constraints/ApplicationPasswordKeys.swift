// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The keys that an application password stands for: one slow derivation for the store, then a fast one for each item.
struct ApplicationPasswordKeys {
    let storeID: StoreID
    let cost: PasscodeCost

    /// The key of a new item.
    func make(
        from password: ApplicationPassword
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord.PasswordRecord) {
        let random = try SecretBytes(randomByteCount: ConstraintRecord.PasswordRecord.saltByteCount)
        // Not a secret from here on: the bytes are copied within the closure.
        return try make(from: password, salt: unsafe random.withBytes { unsafe Array($0) })
    }

    /// The same with a given salt, so that the tests can compare with another program's.
    func make(
        from password: ApplicationPassword, salt: [UInt8]
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord.PasswordRecord) {
        let stretched = try stretched(password)
        let record = ConstraintRecord.PasswordRecord(salt: salt, cost: cost.encoded, check: try check(stretched, salt: salt))
        return (try key(stretched, salt: salt), record)
    }

    /// The key of a stored item; nil when the password is wrong.
    func key(
        from password: ApplicationPassword, _ record: ConstraintRecord.PasswordRecord
    ) throws(KeychainFailure) -> SharedSecretBytes? {
        let stretched = try stretched(password)
        guard try check(stretched, salt: record.salt) == record.check else { return nil }
        return try key(stretched, salt: record.salt)
    }

    private func stretched(_ password: ApplicationPassword) throws(KeychainFailure) -> SharedSecretBytes {
        // The same for every item of the store, so that a program that reads many waits once. Names the store: nobody can prepare
        // for all stores at once.
        let record = PasscodeRecord(salt: Array("keychain apppw 1".utf8) + storeID.bytes, cost: cost)
        return try password.stretched(for: storeID, cost: cost.encoded) { bytes throws(KeychainFailure) in
            defer { SecretArena.wipeStack() }
            return try PasscodeKey.stretch(bytes, record)
        }
    }

    private func key(_ stretched: SharedSecretBytes, salt: [UInt8]) throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(try KeyPurpose.applicationPassword.derive(from: stretched.secret, storeID: storeID, context: salt))
    }

    private func check(_ stretched: SharedSecretBytes, salt: [UInt8]) throws(KeychainFailure) -> [UInt8] {
        try KeyPurpose.applicationPasswordCheck.deriveBytes(
            from: stretched.secret, storeID: storeID, context: salt, byteCount: ConstraintRecord.PasswordRecord.checkByteCount)
    }
}
