// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import KeychainCore

/// Creates the keys of a constraint tree for a new item, and the record for deriving them again once the tree is satisfied.
struct ConstraintSealing {
    let storeID: StoreID
    /// Nil while no passcode is set.
    let presencePublicKey: [UInt8]?
    let applicationPassword: ApplicationPassword?
    let applicationPasswordCost: PasscodeCost
    /// Nil without biometry.
    let enrollment: BiometricEnrollment?

    /// Returns the key of the root, and the record.
    ///
    /// Throws `.authFailed` if the constraint can never be satisfied on this platform, and a failure with `needs` if the application
    /// password is missing.
    func seal(_ constraint: AccessControl.Constraint) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord) {
        let node = try node(constraint)
        guard let key = node.key else { throw KeychainFailure.biometryNotAvailable() }
        return (key, node.record)
    }

    private struct Node {
        /// Nil if nothing on this platform can release one.
        let key: SharedSecretBytes?
        let record: ConstraintRecord
    }

    private func node(_ constraint: AccessControl.Constraint) throws(KeychainFailure) -> Node {
        switch constraint {
        case .userPresence: return try presenceNode(.userPresence)
        case .devicePasscode: return try presenceNode(.devicePasscode)
        case .biometryAny:
            guard let enrollment else { return Node(key: nil, record: .keyless(.biometryAny)) }
            let (key, sealed) = try keySealed(to: enrollment.anyPublicKey, .biometry)
            return Node(key: key, record: .biometryAny(sealedKey: sealed))
        case .biometryCurrentSet:
            guard let enrollment else { return Node(key: nil, record: .keyless(.biometryCurrentSet)) }
            let (key, sealed) = try keySealed(to: enrollment.currentSetPublicKey, .biometry)
            return Node(key: key, record: .biometryCurrentSet(enrollment.setID, sealedKey: sealed))
        case .companion: return Node(key: nil, record: .keyless(.companion))
        case .applicationPassword: return try passwordNode()
        case .any(let parts): return try anyNode(parts)
        case .all(let parts): return try allNode(parts)
        }
    }

    private func presenceNode(_ presence: ConstraintRecord.Presence) throws(KeychainFailure) -> Node {
        guard let presencePublicKey else {
            throw KeychainFailure.passcodeNotSet()
        }
        let (key, sealed) = try keySealed(to: presencePublicKey, .presence)
        guard presence == .userPresence, let enrollment else { return Node(key: key, record: .presence(presence, sealedKey: sealed)) }
        let other = try SealedBox.seal(key.secret, to: enrollment.anyPublicKey, .biometry, storeID: storeID)
        return Node(key: key, record: .presenceOrBiometry(sealedKey: sealed, biometrySealedKey: other))
    }

    /// A random key, and the same sealed to a public key.
    private func keySealed(
        to publicKey: [UInt8], _ purpose: SealedBox.Purpose
    ) throws(KeychainFailure) -> (SharedSecretBytes, sealed: [UInt8]) {
        let key = try SecretBytes(randomByteCount: SealedBox.secretByteCount)
        let sealed = try SealedBox.seal(key, to: publicKey, purpose, storeID: storeID)
        return (SharedSecretBytes(key), sealed)
    }

    private func passwordNode() throws(KeychainFailure) -> Node {
        guard let applicationPassword else { throw .authenticationRequired(AuthenticationNeeds(applicationPassword: .new)) }
        let keys = ApplicationPasswordKeys(storeID: storeID, cost: applicationPasswordCost)
        let (key, record) = try keys.make(from: applicationPassword)
        return Node(key: key, record: .applicationPassword(record))
    }

    private func anyNode(_ parts: [AccessControl.Constraint]) throws(KeychainFailure) -> Node {
        let own = try SecretBytes(randomByteCount: KeyWrapping.keyByteCount)
        var branches: [ConstraintRecord.Branch] = []
        for part in parts {
            let node = try node(part)
            let wrapped = try node.key.map { key throws(KeychainFailure) in
                try KeyWrapping.wrap(SymmetricKey(own), under: key.secret)
            }
            branches.append(ConstraintRecord.Branch(node.record, wrappedKey: wrapped))
        }
        let isSatisfiable = branches.contains { $0.wrappedKey != nil }
        return Node(key: isSatisfiable ? SharedSecretBytes(own) : nil, record: .any(branches))
    }

    private func allNode(_ parts: [AccessControl.Constraint]) throws(KeychainFailure) -> Node {
        var keys: [SharedSecretBytes] = []
        var records: [ConstraintRecord] = []
        for part in parts {
            let node = try node(part)
            if let key = node.key { keys.append(key) }
            records.append(node.record)
        }
        guard keys.count == parts.count else { return Node(key: nil, record: .all(records)) }
        return Node(key: try Self.combined(keys, storeID: storeID), record: .all(records))
    }

    /// Combines several keys, all of which are required: HKDF over them in order.
    static func combined(_ keys: [SharedSecretBytes], storeID: StoreID) throws(KeychainFailure) -> SharedSecretBytes {
        // All keys have the same size, and the region has room for all of them.
        let joined = try unsafe SecretBytes(byteCount: keys.count * KeyWrapping.keyByteCount) { buffer in
            for (index, key) in keys.enumerated() {
                unsafe key.secret.withBytes { bytes in
                    let place = index * KeyWrapping.keyByteCount..<(index + 1) * KeyWrapping.keyByteCount
                    unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[place]).copyMemory(from: bytes)
                }
            }
        }
        return SharedSecretBytes(try KeyPurpose.constraintConjunction.derive(from: joined, storeID: storeID))
    }
}

/// Recovers the root key of a constraint record with the available keys.
struct ConstraintOpening {
    let storeID: StoreID
    let keys: ConstraintKeys

    /// Returns the root key.
    ///
    /// Throws a failure with `needs` if something is missing or wrong; `.decode` if the record was altered or sealed to a presence key
    /// pair that is not the keybag's; `.authFailed` if the record can never be satisfied on this platform; and `.itemNotFound` if the key was
    /// destroyed with the set of fingers that it belonged to.
    func key(of record: ConstraintRecord) throws(KeychainFailure) -> SharedSecretBytes {
        switch record {
        case .presence(_, let sealedKey): return try presenceKey(sealedKey)
        case .presenceOrBiometry(let sealedKey, let biometrySealedKey):
            if keys.presence == nil, let anyKey = keys.biometry?.anyKey {
                if let key = try SealedBox.open(biometrySealedKey, with: anyKey.secret, .biometry, storeID: storeID) {
                    return SharedSecretBytes(key)
                }
                // It is sealed to the biometric keys of another machine. The passcode opens it here too.
                throw .authenticationRequired(AuthenticationNeeds(passcodeFor: []))
            }
            guard keys.presence != nil else { throw .authenticationRequired(AuthenticationNeeds(passcodeFor: [], orBiometry: [.any])) }
            return try presenceKey(sealedKey)
        case .biometryAny(let sealedKey): return try biometryKey(sealedKey, .any)
        case .biometryCurrentSet(let set, let sealedKey):
            let known = [keys.enrollment?.setID, keys.biometry?.setID].compactMap(\.self)
            guard !known.contains(where: set.isOlder) else {
                throw KeychainFailure(.itemNotFound, "the item was lost when the set of enrolled fingers changed")
            }
            // The match was before the set of the item was enrolled.
            if let released = keys.biometry, released.setID.isOlder(than: set) {
                throw .authenticationRequired(AuthenticationNeeds(biometry: [.currentSet]))
            }
            return try biometryKey(sealedKey, .currentSet)
        case .applicationPassword(let password): return try passwordKey(password)
        case .keyless:
            throw KeychainFailure(
                .authFailed, "the item needs biometry, which cannot release a key on this platform", refusal: .biometryNotAvailable)
        case .any(let branches): return try anyKey(branches)
        case .all(let records): return try allKey(records)
        }
    }

    private func presenceKey(_ sealedKey: [UInt8]) throws(KeychainFailure) -> SharedSecretBytes {
        guard let presence = keys.presence else { throw .authenticationRequired(AuthenticationNeeds(passcodeFor: [])) }
        guard let key = try SealedBox.open(sealedKey, with: presence.privateKey, .presence, storeID: storeID) else {
            throw KeychainFailure(.decode, "the item's access control was altered, or belongs to a passcode that was removed")
        }
        return SharedSecretBytes(key)
    }

    private func biometryKey(_ sealedKey: [UInt8], _ kind: BiometryKind) throws(KeychainFailure) -> SharedSecretBytes {
        guard let released = keys.biometry else { throw .authenticationRequired(AuthenticationNeeds(biometry: [kind])) }
        guard let key = try SealedBox.open(sealedKey, with: released.key(kind).secret, .biometry, storeID: storeID) else {
            // Not `.decode`: a damaged item may be overwritten.
            throw KeychainFailure(
                .authFailed, "the item belongs to the biometric keys of another machine, or was altered", refusal: .notSatisfied)
        }
        return SharedSecretBytes(key)
    }

    private func passwordKey(_ record: ConstraintRecord.PasswordRecord) throws(KeychainFailure) -> SharedSecretBytes {
        guard let password = keys.applicationPassword else {
            throw .authenticationRequired(AuthenticationNeeds(applicationPassword: .missing))
        }
        guard let cost = PasscodeCost(encoded: record.cost) else {
            throw KeychainFailure(.decode, "the cost of the item's password is out of bounds: too low or too high", cause: .costRefused)
        }
        let derivation = ApplicationPasswordKeys(storeID: storeID, cost: cost)
        guard let key = try derivation.key(from: password, record) else {
            throw .authenticationRequired(AuthenticationNeeds(applicationPassword: .wrong))
        }
        return key
    }

    /// The key by the first branch that opens.
    ///
    /// If none does, throws the needs of the branches that could, or the failure of the first branch that has a key.
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
                guard let needs = error.needs else {
                    failure = failure ?? error
                    continue
                }
                failure = .authenticationRequired(failure?.needs.map { $0.or(needs) } ?? needs)
            }
        }
        throw failure ?? KeychainFailure(.authFailed, "nothing on this platform can release the item's key", refusal: .biometryNotAvailable)
    }

    /// The key by all records.
    ///
    /// Throws the needs of all of them together.
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
        guard needs.isEmpty else { throw .authenticationRequired(needs) }
        return try ConstraintSealing.combined(found, storeID: storeID)
    }
}

/// Derives keys from an application password: one slow derivation for the store, then a fast one for each item.
struct ApplicationPasswordKeys {
    let storeID: StoreID
    let cost: PasscodeCost

    /// Creates the key of a new item, with a random salt.
    func make(
        from password: ApplicationPassword
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord.PasswordRecord) {
        let random = try SecretBytes(randomByteCount: ConstraintRecord.PasswordRecord.saltByteCount)
        // Not a secret from here on: the bytes are copied within the closure.
        return try make(from: password, salt: unsafe random.withBytes { unsafe Array($0) })
    }

    /// Creates the key of a new item with a given salt, so that tests can compare with another implementation.
    func make(
        from password: ApplicationPassword, salt: [UInt8]
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord.PasswordRecord) {
        let stretched = try stretched(password)
        let record = ConstraintRecord.PasswordRecord(salt: salt, cost: cost.encoded, check: try check(stretched, salt: salt))
        return (try key(stretched, salt: salt), record)
    }

    /// Derives the key of a stored item; nil if the password is wrong.
    func key(
        from password: ApplicationPassword, _ record: ConstraintRecord.PasswordRecord
    ) throws(KeychainFailure) -> SharedSecretBytes? {
        let stretched = try stretched(password)
        guard try check(stretched, salt: record.salt) == record.check else { return nil }
        return try key(stretched, salt: record.salt)
    }

    private func stretched(_ password: ApplicationPassword) throws(KeychainFailure) -> SharedSecretBytes {
        // The salt is the same for all items of a store, so a process that reads many items derives the key once. It contains
        // the store's identifier, so that guesses cannot be precomputed for all stores.
        let record = PasscodeRecord(salt: Array("keychain apppw 1".utf8) + storeID.bytes, cost: cost)
        return try password.stretched(for: storeID, cost: cost.encoded) { bytes throws(KeychainFailure) in
            defer { SecretArena.wipeStack() }
            return try PasscodeKey.stretch(bytes, record, of: storeID)
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
