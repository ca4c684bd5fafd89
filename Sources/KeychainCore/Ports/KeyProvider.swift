// SPDX-License-Identifier: Apache-2.0

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
    func forOneCall() -> any KeyProvider
}

/// Whether a class key can be had.
package enum KeyAvailability: Sendable {
    case available
    /// Later perhaps: the keychain is locked for this class.
    case locked
    /// Not with this keybag: it was made by a newer version, or the keybag is older than the row.
    case missing
}
