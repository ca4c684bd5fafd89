// SPDX-License-Identifier: Apache-2.0

/// The key of a protection class.
///
/// Opening an item takes one, and only a `KeyProvider` lends one: decrypting while locked does not compile into anything that
/// could work.
package struct ClassKey: ~Copyable, Sendable {
    package let accessibility: Accessibility
    /// Class keys are renewed; a row says under which one it was written.
    package let generation: UInt32
    package let secret: SecretBytes

    package static let byteCount = 32

    package init(accessibility: Accessibility, generation: UInt32, secret: consuming SecretBytes) {
        self.accessibility = accessibility
        self.generation = generation
        self.secret = secret
    }

    /// A copy of a key that a provider lends, for where two are needed at once.
    init(copying keys: any KeyProvider, _ accessibility: Accessibility, generation: UInt32) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        let secret = try keys.withClassKey(for: accessibility, generation: generation) {
            (key: borrowing ClassKey) throws(KeychainFailure) in
            SharedSecretBytes(try unsafe key.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) })
        }
        self.init(accessibility: accessibility, generation: generation, secret: try secret.copy())
    }
}

/// Names one class key: a protection class has one of each generation.
package struct ClassKeyID: Hashable, Sendable {
    package let accessibility: Accessibility
    package let generation: UInt32

    package init(_ accessibility: Accessibility, generation: UInt32) {
        self.accessibility = accessibility
        self.generation = generation
    }

    /// By the class's number: its raw value is text, and every read looks keys up.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(accessibility.code) << 32 | UInt64(generation))
    }
}

/// Lends class keys for the duration of a call.
///
/// Implemented by Keybag.
package protocol KeyProvider: Sendable {
    /// The keybag these keys come from. A write holds only while the store still has this one.
    var keybagGeneration: UInt64 { get }

    /// The generation of the class that new writes use.
    ///
    /// Throws `.authFailed` when the class exists only with a passcode and none is set.
    func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32

    /// Whether `withClassKey` would lend that key now.
    func availability(of accessibility: Accessibility, generation: UInt32) -> KeyAvailability

    /// Lends the key to `body`.
    ///
    /// Throws `.interactionNotAllowed` while the class is locked, `.decode` when there is no such generation.
    func withClassKey<Result>(
        for accessibility: Accessibility, generation: UInt32,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result

    /// The same keys for the duration of one call: a key that is asked for again need not be fetched again.
    ///
    /// Whatever it fetched goes with the last reference to it, so nobody keeps it beyond the call.
    func scopedToCall() -> any KeyProvider
}

/// Whether a class key can be had.
package enum KeyAvailability: Sendable {
    case available
    /// Later perhaps: the keychain is locked for this class.
    case locked
    /// Not with this keybag: it was made by a newer version, or the keybag is older than the row.
    case missing
}
