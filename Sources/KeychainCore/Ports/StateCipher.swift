// SPDX-License-Identifier: Apache-2.0

/// Seals the state of a store.
///
/// Implemented by Keybag, with a key that every keybag of the store has.
package protocol StateCipher: Sendable {
    /// Returns the element of a row tag, which the state adds up.
    func element(ofRowTag tag: [UInt8]) -> UInt256

    /// Returns the keyed digest of the bytes of a keybag.
    func digest(ofKeybag bytes: [UInt8]) -> UInt256

    /// Encrypts the sum of the state's rows, and authenticates the state.
    func seal(_ state: StoreState) -> [UInt8]

    /// Opens a sealed state.
    ///
    /// Returns nil for anything that `seal` with the same key did not return.
    func open(_ sealed: [UInt8]) -> StoreState?
}
