// SPDX-License-Identifier: Apache-2.0

/// The key of a protection class.
///
/// Opening an item requires one, and only a `KeyProvider` provides one, so code cannot decrypt an item while its class is locked.
package struct ClassKey: ~Copyable, Sendable {
    package let accessibility: ItemAccessibility
    /// The generation.
    ///
    /// Class keys are renewed, and each row names the generation that it was written under.
    package let generation: UInt32
    package let secret: SecretBytes

    package static let byteCount = 32

    package init(accessibility: ItemAccessibility, generation: UInt32, secret: consuming SecretBytes) {
        self.accessibility = accessibility
        self.generation = generation
        self.secret = secret
    }

    /// Copies a provider's key, for operations that need two keys at once.
    init(
        copying keys: any KeyProvider, _ accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading
    ) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        let secret = try keys.withClassKey(for: accessibility, generation: generation, lockEpoch: lockEpoch) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            SharedSecretBytes(try unsafe key.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) })
        }
        self.init(accessibility: accessibility, generation: generation, secret: try secret.copy())
    }
}

/// Identifies a class key by its protection class and generation.
package struct ClassKeyID: Hashable, Sendable {
    package let accessibility: ItemAccessibility
    package let generation: UInt32

    package init(_ accessibility: ItemAccessibility, generation: UInt32) {
        self.accessibility = accessibility
        self.generation = generation
    }

    /// Hashes the class's number rather than its text, because every read looks up keys.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(accessibility.code) << 32 | UInt64(generation))
    }
}

/// Provides class keys, each for the duration of a closure.
///
/// Keys that a lock makes unavailable are loaded only under a lock epoch that the same call has read. `lockEpoch` is read when such a key
/// is needed and never otherwise; pass the session in which the key is used.
///
/// Implemented by Keybag.
package protocol KeyProvider: Sendable {
    /// The generation of the keybag of these keys. A write fails if the store has another one.
    var keybagGeneration: UInt64 { get }

    /// Returns the generation of the class that new writes use.
    ///
    /// Throws `.authFailed` if the class exists only with a passcode and none is set.
    func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32

    /// Returns whether `withClassKey` would provide that key now.
    func availability(of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading) -> KeyAvailability

    /// Calls `body` with the key.
    ///
    /// Throws `.interactionNotAllowed` while the class is locked, and `.decode` if there is no such generation.
    func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// Returns a provider of the same keys that caches them for the duration of one call.
    ///
    /// The cache is wiped with the last reference, so it must not outlive the call. A call for `inspection` does not postpone automatic locking.
    func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider
}

/// Whether a class key is available.
package enum KeyAvailability: Sendable {
    case available
    /// The keychain is locked for this class.
    case locked
    /// The keybag has no such key: a newer version made the key, or the keybag is older than the row.
    case missing
}
