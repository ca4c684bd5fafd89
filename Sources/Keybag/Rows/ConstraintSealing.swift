// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import KeychainCore

/// Makes the keys of a constraint tree for a new item, and the record from which whoever satisfies it gets them again.
struct ConstraintSealing {
    let storeID: StoreID
    /// Nil while no passcode is set.
    let presencePublicKey: [UInt8]?
    let applicationPassword: ApplicationPassword?
    let applicationPasswordCost: PasscodeCost

    /// The key of the root, and the record.
    ///
    /// Throws `.authFailed` for what nobody here could ever satisfy, and a failure that needs the application password.
    func seal(_ constraint: AccessControl.Constraint) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord) {
        let node = try node(constraint)
        guard let key = node.key else { throw KeychainFailure.biometryNotAvailable() }
        return (key, node.record)
    }

    private struct Node {
        /// Nil: nobody here could release one.
        let key: SharedSecretBytes?
        let record: ConstraintRecord
    }

    private func node(_ constraint: AccessControl.Constraint) throws(KeychainFailure) -> Node {
        switch constraint {
        case .userPresence: return try presenceNode(.userPresence)
        case .devicePasscode: return try presenceNode(.devicePasscode)
        case .biometryAny: return Node(key: nil, record: .keyless(.biometryAny))
        case .biometryCurrentSet: return Node(key: nil, record: .keyless(.biometryCurrentSet))
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
        let key = try SecretBytes(randomByteCount: SealedBox.secretByteCount)
        let sealed = try SealedBox.seal(key, to: presencePublicKey, .presence, storeID: storeID)
        return Node(key: SharedSecretBytes(key), record: .presence(presence, sealedKey: sealed))
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

    /// One key of several, all of which are needed: HKDF over them in order.
    static func combined(_ keys: [SharedSecretBytes], storeID: StoreID) throws(KeychainFailure) -> SharedSecretBytes {
        // Each key is copied to its place; they all have one size, and the region has room for all.
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
        case .keyless:
            throw KeychainFailure(
                .authFailed, "the item needs biometry, which releases no key here", refusal: .biometryNotAvailable)
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

    private func passwordKey(_ record: ConstraintRecord.PasswordRecord) throws(KeychainFailure) -> SharedSecretBytes {
        guard let password = keys.applicationPassword else {
            throw .authenticationRequired(AuthenticationNeeds(applicationPassword: .missing))
        }
        guard let cost = PasscodeCost(encoded: record.cost) else {
            throw KeychainFailure(.decode, "the item names a cost of its password that is refused: too low or too high")
        }
        let derivation = ApplicationPasswordKeys(storeID: storeID, cost: cost)
        guard let key = try derivation.key(from: password, record) else {
            throw .authenticationRequired(AuthenticationNeeds(applicationPassword: .wrong))
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
        guard needs.isEmpty else { throw .authenticationRequired(needs) }
        return try ConstraintSealing.combined(found, storeID: storeID)
    }
}

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
