// SPDX-License-Identifier: Apache-2.0

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
