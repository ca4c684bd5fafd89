// SPDX-License-Identifier: Apache-2.0
package import Keybag
package import KeychainCore

/// What an open keychain consists of.
package struct OpenedKeychain<Store: ItemStore>: Sendable {
    package let store: Store
    package let keybag: OpenKeybag
    package let keychain: SealedKeychain
    package let protector: any DeviceProtector
    package let holder: any KeyHolder
    /// Whether the keybag in use is the one that the store's last change left; without it nothing can be written.
    package let isKeybagCurrent: Bool

    package init(
        store: Store, keybag: OpenKeybag, keychain: SealedKeychain, protector: any DeviceProtector, holder: any KeyHolder,
        isKeybagCurrent: Bool
    ) {
        self.store = store
        self.keybag = keybag
        self.keychain = keychain
        self.protector = protector
        self.holder = holder
        self.isKeybagCurrent = isKeybagCurrent
    }

    /// The device secret, for as long as the caller keeps it.
    func deviceSecret() throws(KeychainFailure) -> SecretBytes {
        try protector.deviceSecret(for: keybag.storeID)
    }

    /// Whether another process has changed the keybag since this was opened.
    ///
    /// What the store cannot tell counts as no: the call itself has said why by then.
    func isOutdated() -> Bool {
        guard isKeybagCurrent else { return false }
        guard let stored = try? store.read({ reading throws(KeychainFailure) in try reading.keybag().generation }) else { return false }
        return stored != keybag.keybagGeneration
    }
}
