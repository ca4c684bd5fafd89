// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// A keychain over its ports: the rules of Keychain Services, applied to rows that only the cipher can read.
package struct SealedKeychain: Keychain {
    package let store: any ItemStore
    package private(set) var keys: any KeyProvider
    /// What this call has to satisfy access control with.
    private(set) var constraintKeys = ConstraintKeys()
    let cipher: any ItemCipher
    let clock: any WallClock
    let digests: DigestCache
    package let entitlements: Entitlements
    /// Takes a line when something was skipped that somebody should look at.
    ///
    /// Never a secret, never an attribute's value.
    let log: @Sendable (String) -> Void

    package init(
        store: any ItemStore, keys: any KeyProvider, cipher: any ItemCipher, clock: any WallClock, entitlements: Entitlements,
        log: @escaping @Sendable (String) -> Void
    ) {
        self.store = store
        self.keys = keys
        self.cipher = cipher
        self.clock = clock
        self.digests = DigestCache(cipher: cipher)
        self.entitlements = entitlements
        self.log = log
    }

    /// The same keychain as a program with other entitlements sees it.
    package func entitled(to entitlements: Entitlements) -> SealedKeychain {
        SealedKeychain(store: store, keys: keys, cipher: cipher, clock: clock, entitlements: entitlements, log: log)
    }

    /// The same keychain with other keys, which open the same rows.
    package func with(keys: any KeyProvider) -> SealedKeychain {
        var keychain = self
        keychain.keys = keys
        return keychain
    }

    /// The same keychain for one call: what its rows are opened with is asked for once, and gone when the call is over.
    var forOneCall: SealedKeychain { with(keys: keys.forOneCall()) }

    /// The same for one call that may satisfy access control.
    func forOneCall(_ authentication: Authentication) -> SealedKeychain {
        var keychain = forOneCall
        if let context = authentication.context {
            keychain.constraintKeys = context.keys(of: cipher.storeID, presencePublicKey: cipher.presencePublicKey)
        }
        return keychain
    }

    /// The same keychain with what satisfies access control.
    package func with(constraintKeys: ConstraintKeys) -> SealedKeychain {
        var keychain = self
        keychain.constraintKeys = constraintKeys
        return keychain
    }

    /// Whether the store's keybag is the one that these keys come from.
    ///
    /// What cannot be opened with the keys of an older one may be open to the newer one's.
    func isKeybagCurrent(_ reading: any ItemReading) throws(KeychainFailure) -> Bool {
        try reading.keybag().generation == keys.keybagGeneration
    }

    package func write<Result>(
        sharesFlush: Bool = false, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        switch try store.write(ifKeybagGeneration: keys.keybagGeneration, sharesFlush: sharesFlush, body) {
        case .written(let result): return result
        case .keybagChanged:
            throw Self.keybagChanged
        }
    }

    /// Whether a write of one item is so short that others may be kept waiting for it: no large value is moved, and no key is derived
    /// from a password.
    func isShort(secret: Data?) -> Bool {
        constraintKeys.presence == nil && constraintKeys.applicationPassword == nil
            && (secret?.count ?? 0) <= Self.largestShortSecretByteCount
    }

    private static let largestShortSecretByteCount = 64 << 10

    /// An item that is there, but of which nothing can be read.
    static var hiddenRow: KeychainFailure {
        KeychainFailure(.decode, "an item lies in a damaged part of the keychain's file, and is kept as it is", isDamage: true)
    }

    package static var keybagChanged: KeychainFailure {
        KeychainFailure(.notAvailable, "the store's keybag is another one than when it was opened", callsForReopening: true)
    }
}
