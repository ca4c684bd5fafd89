// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Keybag
package import KeychainCore

/// Turning synchronization on and off, and access to what the store remembers about it.
extension LocalKeychain {
    /// Returns whether synchronization is on.
    ///
    /// Throws `.itemNotFound` if there is no keychain, and the errors of opening it.
    package func isSynchronizing() throws(KeychainFailure) -> Bool {
        try perform(creating: false) { opened throws(KeychainFailure) in try opened.syncStore().isSynchronizing() }
    }

    /// Turns synchronization on, in a new keychain if there is none.
    ///
    /// A no-op if it is on. Programs of versions that do not know the ledger are refused from their next write on.
    package func startSynchronizing() throws(KeychainFailure) {
        try perform(creating: true) { opened throws(KeychainFailure) in try opened.syncStore().startSynchronizing() }
    }

    /// Removes the ledger, the conflict copies, and this device's keys.
    ///
    /// The items stay. A no-op if synchronization is off. The keys go first: a keychain with a ledger and without keys can leave again, but keys without a ledger would stay for ever.
    package func stopSynchronizing() throws(KeychainFailure) {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try CircleKeyItems(opened.keychain.with(entitlements: .synchronization)).remove()
            try opened.syncStore().stopSynchronizing()
        }
    }

    /// Runs `body` on the ledger and the items that synchronize, in one transaction; see `SealedKeychain.synchronize`.
    ///
    /// `body` runs again if the keybag was replaced meanwhile.
    package func synchronize<Result>(
        _ body: (any SyncWriting, any SyncItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in try opened.keychain.synchronize(body) }
    }

    /// Runs `body` on a consistent snapshot of the ledger and the items that synchronize; see `SealedKeychain.readSynchronized`.
    package func readSynchronized<Result>(
        _ body: (any SyncReading, any SyncItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in try opened.keychain.readSynchronized(body) }
    }

    /// Runs `body` on a consistent snapshot of items and ledger.
    ///
    /// Throws `.notAvailable` while synchronization is off.
    package func readLedger<Result>(
        _ body: (any SyncStoreReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try perform(creating: false) { opened throws(KeychainFailure) in try opened.syncStore().readLedger(body) }
    }

    // MARK: The circles that this keychain has left

    /// Stores what the engine has to know if this keychain enters the circle again, in place of what was stored before.
    ///
    /// A sealed item, because a store without a ledger has no other place for it. Throws `.interactionNotAllowed` if the keychain was not unlocked since
    /// the machine was started.
    package func storeFormerVersions(_ bytes: [UInt8], of circle: CircleID) throws(KeychainFailure) {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try FormerVersionItem(opened.keychain.with(entitlements: .synchronization), circle).store(bytes)
        }
    }

    /// Returns what was stored when this keychain left the circle last; nil if it never left it.
    package func formerVersions(of circle: CircleID) throws(KeychainFailure) -> [UInt8]? {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try FormerVersionItem(opened.keychain.with(entitlements: .synchronization), circle).bytes()
        }
    }

    // MARK: The keys of this device

    /// The cryptography of circles.
    package static var circleCipher: any CircleCipher { CircleCryptography() }

    /// Makes new keys for this device, and stores them in place of earlier ones.
    ///
    /// Throws `.interactionNotAllowed` unless the keychain is unlocked.
    package func makeDeviceKeys() throws(KeychainFailure) -> any CircleDeviceKeys {
        let keys = try DeviceKeys()
        try storeDeviceKeys(keys)
        return keys
    }

    /// Stores the keys of this device in place of earlier ones.
    ///
    /// `keys` were made by `circleCipher`. Throws `.interactionNotAllowed` unless the keychain is unlocked.
    package func storeDeviceKeys(_ keys: any CircleDeviceKeys) throws(KeychainFailure) {
        guard let keys = keys as? DeviceKeys else { throw KeychainFailure(.internal, "the keys are of another implementation") }
        try perform(creating: false) { opened throws(KeychainFailure) in
            // In one transaction: a device without one of its keys could never sign or read again.
            var failure: KeychainFailure?
            _ = try opened.keychain.with(entitlements: .synchronization).transaction { keychain in
                do throws(KeychainFailure) {
                    let items = CircleKeyItems(keychain)
                    try items.remove()
                    try items.store(keys)
                    return true
                } catch {
                    failure = error
                    return false
                }
            }
            if let failure { throw failure }
        }
    }

    /// Returns the keys of this device; without those of lanes whose class is locked.
    ///
    /// Does not count as use. Throws `.itemNotFound` if there are none, and `.interactionNotAllowed` if the keychain was not unlocked since the machine was
    /// started.
    package func deviceKeys() throws(KeychainFailure) -> any CircleDeviceKeys {
        try perform(creating: false) { opened throws(KeychainFailure) in
            try CircleKeyItems(opened.keychain.scopedToAgent.with(entitlements: .synchronization)).keys()
        }
    }
}

extension OpenKeychain {
    fileprivate func syncStore() throws(KeychainFailure) -> any SyncStore {
        guard let store = store as? any SyncStore else { throw KeychainFailure(.unimplemented, "this keychain cannot be synchronized") }
        return store
    }
}

/// The private keys of this device, as items of a group that no program may use.
///
/// Each has the class of what it opens, and stays on this device, so passcodes, locks, and `verify` apply to it as to any item.
private struct CircleKeyItems {
    /// With the entitlements of synchronization.
    private let keychain: any Keychain

    init(_ keychain: any Keychain) {
        self.keychain = keychain
    }

    private enum Key: String, CaseIterable {
        case signing
        case whenUnlockedBox
        case afterFirstUnlockBox

        var accessibility: ItemAccessibility {
            switch self {
            case .signing, .afterFirstUnlockBox: .afterFirstUnlockThisDeviceOnly
            case .whenUnlockedBox: .whenUnlockedThisDeviceOnly
            }
        }

        var attributes: ItemAttributes {
            ItemAttributes([.service: .string("keychain-sync"), .account: .string(rawValue), .synchronizable: .number(0)])
        }
    }

    func store(_ keys: DeviceKeys) throws(KeychainFailure) {
        let publicKeys = keys.publicKeys.signing + keys.publicKeys.whenUnlockedBox + keys.publicKeys.afterFirstUnlockBox
        for key in Key.allCases {
            let secret =
                switch key {
                case .signing: keys.signingKey
                case .whenUnlockedBox: try keys.boxKey(for: .whenUnlocked)
                case .afterFirstUnlockBox: try keys.boxKey(for: .afterFirstUnlock)
                }
            var attributes = key.attributes
            attributes[.generic] = .data(Data(publicKeys))
            // Copied for as long as it takes to seal it, as the secret of any item that a program adds.
            let copy = unsafe secret.secret.withBytes { unsafe Data($0) }
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: copy,
                    accessControl: AccessControl(key.accessibility)))
        }
    }

    func remove() throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try keychain.delete(
                DeleteRequest(
                    query: ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.service: .string("keychain-sync")]))))
        } catch {
            guard error.status == .itemNotFound else { throw error }
        }
    }

    func keys() throws(KeychainFailure) -> DeviceKeys {
        let (signingKey, publicKeys) = try read(.signing)
        var boxKeys: [Lane: SharedSecretBytes] = [:]
        for (lane, key) in [(Lane.whenUnlocked, Key.whenUnlockedBox), (.afterFirstUnlock, .afterFirstUnlockBox)] {
            do throws(KeychainFailure) {
                let (boxKey, samePublicKeys) = try read(key)
                guard samePublicKeys == publicKeys else { throw Self.damaged }
                boxKeys[lane] = boxKey
            } catch {
                guard error.status == .interactionNotAllowed else { throw error }
            }
        }
        return DeviceKeys(publicKeys, signingKey: signingKey, boxKeys: boxKeys)
    }

    private func read(_ key: Key) throws(KeychainFailure) -> (SharedSecretBytes, DevicePublicKeys) {
        let query = ItemQuery(itemClass: .genericPassword, attributes: key.attributes)
        let items = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
        let size = DevicePublicKeys.keyByteCount
        guard let item = items.first, let secret = item.secret, secret.count == size,
            case .data(let data)? = item.attributes[.generic], data.count == 3 * size
        else { throw Self.damaged }
        let bytes = Array(data)
        guard
            let publicKeys = DevicePublicKeys(
                signing: Array(bytes[..<size]), whenUnlockedBox: Array(bytes[size..<2 * size]),
                afterFirstUnlockBox: Array(bytes[(2 * size)...]))
        else { throw Self.damaged }
        var privateKey = Array(secret)
        defer { privateKey.wipe() }
        // The region has as many bytes.
        let key = try unsafe SecretBytes(byteCount: size) { unsafe $0.copyBytes(from: privateKey) }
        return (SharedSecretBytes(key), publicKeys)
    }

    private static var damaged: KeychainFailure {
        KeychainFailure(.decode, "the keys of this device's synchronization are damaged", subject: .store, cause: .damaged)
    }
}

/// What this keychain has shared in a circle that it has left, as an item of a group that no program may use.
private struct FormerVersionItem {
    /// With the entitlements of synchronization.
    private let keychain: any Keychain
    private let attributes: ItemAttributes

    init(_ keychain: any Keychain, _ circle: CircleID) {
        self.keychain = keychain
        attributes = ItemAttributes([
            .service: .string("keychain-sync-former"), .account: .string(circle.hexadecimal), .synchronizable: .number(0),
        ])
    }

    private var query: ItemQuery { ItemQuery(itemClass: .genericPassword, attributes: attributes) }

    func store(_ bytes: [UInt8]) throws(KeychainFailure) {
        do throws(KeychainFailure) {
            try keychain.update(UpdateRequest(query: query, secret: Data(bytes)))
        } catch {
            guard error.status == .itemNotFound else { throw error }
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: Data(bytes),
                    accessControl: AccessControl(.afterFirstUnlockThisDeviceOnly)))
        }
    }

    func bytes() throws(KeychainFailure) -> [UInt8]? {
        do throws(KeychainFailure) {
            return try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true)).first?.secret.map(Array.init)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }
}
