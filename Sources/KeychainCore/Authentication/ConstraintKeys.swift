// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// The keys that are available for satisfying constraints, besides the class key.
package struct ConstraintKeys: Sendable {
    package var presence: PresenceRelease?
    package var applicationPassword: ApplicationPassword?
    /// What is known of the fingers of the person; nil before it was looked for.
    package var enrollment: BiometricEnrollment?
    package var biometry: BiometricRelease?

    package init(
        presence: PresenceRelease? = nil, applicationPassword: ApplicationPassword? = nil, enrollment: BiometricEnrollment? = nil,
        biometry: BiometricRelease? = nil
    ) {
        self.presence = presence
        self.enrollment = enrollment
        self.biometry = biometry
        self.applicationPassword = applicationPassword
    }
}

/// The keys of one keychain that a correct passcode released, for one use or one context.
///
/// Never stored in a key holder, and wiped with the last reference.
package final class PresenceRelease: Sendable {
    package let storeID: StoreID
    /// The public key of the presence key pair, which identifies the pair.
    package let publicKey: [UInt8]
    package let privateKey: SecretBytes
    /// The class keys of the items that authentication was for.
    ///
    /// The keychain itself stays locked if it is locked.
    package let classKeys: any KeyProvider
    /// The classes of those keys.
    package let classes: Set<ItemAccessibility>

    package init(
        storeID: StoreID, publicKey: [UInt8], privateKey: consuming SecretBytes, classKeys: any KeyProvider, classes: Set<ItemAccessibility>
    ) {
        self.storeID = storeID
        self.publicKey = publicKey
        self.privateKey = privateKey
        self.classKeys = classKeys
        self.classes = classes
    }
}

/// An application password, with a cache of the slow derivation for each keychain and cost.
package final class ApplicationPassword: Sendable {
    package let bytes: SecretBytes
    private let stretched = Mutex<[Key: SharedSecretBytes]>([:])

    private struct Key: Hashable {
        let storeID: StoreID
        let cost: [UInt8]
    }

    package init(_ bytes: consuming SecretBytes) {
        self.bytes = bytes
    }

    /// Returns the key that `derive` derives from the password for a keychain at a cost, from the cache if possible.
    package func stretched(
        for storeID: StoreID, cost: [UInt8], _ derive: (borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes
    ) throws(KeychainFailure) -> SharedSecretBytes {
        let key = Key(storeID: storeID, cost: cost)
        if let known = stretched.withLock({ $0[key] }) { return known }
        // Outside the lock, because it is slow. Two threads that derive the same key only lose time.
        let fresh = SharedSecretBytes(try derive(bytes))
        stretched.withLock { $0[key] = fresh }
        return fresh
    }
}

/// A secret with several owners, wiped with the last reference.
package final class SharedSecretBytes: Sendable {
    package let secret: SecretBytes

    package init(_ secret: consuming SecretBytes) {
        self.secret = secret
    }

    /// Returns a copy with a single owner.
    package func copy() throws(KeychainFailure) -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
