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
        case .biometryAny: return Node(key: nil, record: .unreleased(.biometryAny))
        case .biometryCurrentSet: return Node(key: nil, record: .unreleased(.biometryCurrentSet))
        case .companion: return Node(key: nil, record: .unreleased(.companion))
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
        guard let applicationPassword else { throw .needing(AuthenticationNeeds(applicationPassword: .new)) }
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
        let isReleasable = branches.contains { $0.wrappedKey != nil }
        return Node(key: isReleasable ? SharedSecretBytes(own) : nil, record: .any(branches))
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
