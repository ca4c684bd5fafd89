// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// What is at hand to satisfy constraints with, beside the class key.
package struct ConstraintKeys: Sendable {
    package var presence: PresenceRelease?
    package var applicationPassword: ApplicationPassword?

    package init(presence: PresenceRelease? = nil, applicationPassword: ApplicationPassword? = nil) {
        self.presence = presence
        self.applicationPassword = applicationPassword
    }
}

/// What a right passcode has released, of one keychain, for one use or one context.
///
/// Never given to a key holder, and wiped with the last reference to it.
package final class PresenceRelease: Sendable {
    package let storeID: StoreID
    /// The public half of the presence key pair: which pair this is.
    package let publicKey: [UInt8]
    package let privateKey: SecretBytes
    /// The class keys of the items that were asked for: the keychain itself may be locked, and stays so.
    package let classKeys: any KeyProvider
    /// Whose those are.
    package let classes: Set<Accessibility>

    package init(
        storeID: StoreID, publicKey: [UInt8], privateKey: consuming SecretBytes, classKeys: any KeyProvider, classes: Set<Accessibility>
    ) {
        self.storeID = storeID
        self.publicKey = publicKey
        self.privateKey = privateKey
        self.classKeys = classKeys
        self.classes = classes
    }
}

/// A password of the program's own, and what was derived from it: the slow derivation is done once for each keychain and cost.
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

    /// What is derived from the password for a keychain at a cost: by `derive`, unless that was done before.
    package func stretched(
        for storeID: StoreID, cost: [UInt8], _ derive: (borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes
    ) throws(KeychainFailure) -> SharedSecretBytes {
        let key = Key(storeID: storeID, cost: cost)
        if let known = stretched.withLock({ $0[key] }) { return known }
        // Outside the lock: it takes a while, and two that derive the same lose nothing but time.
        let fresh = SharedSecretBytes(try derive(bytes))
        stretched.withLock { $0[key] = fresh }
        return fresh
    }
}

/// A secret with several owners, wiped with the last.
package final class SharedSecretBytes: Sendable {
    package let secret: SecretBytes

    package init(_ secret: consuming SecretBytes) {
        self.secret = secret
    }

    /// A copy with one owner.
    package func copy() throws(KeychainFailure) -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
