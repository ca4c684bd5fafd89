// SPDX-License-Identifier: Apache-2.0

/// Keeps the class keys of an unlocked keychain between calls, and removes them when it is locked.
///
/// The secrets are opaque to it. A holder serves one keybag of one store. Secrets of different keybags are kept side by side, so that a
/// change of the keybag affects neither processes that still use the old one nor another change at the same time.
package protocol KeyHolder: Sendable {
    var kind: KeyHolderKind { get }

    /// Returns the holder of the same store for another keybag.
    func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder

    /// Returns the secret in a slot; nil if there is none, it has expired, or the store was locked since it was stored.
    ///
    /// `lockEpoch` is the store's lock epoch, read after the call began that uses the secret. A secret of an earlier epoch is removed. One
    /// of a later epoch stays: the store was locked and unlocked after the epoch was read. Loading for use restarts the timeout; loading
    /// for inspection does not. Throws if the holder fails.
    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) throws(KeychainFailure) -> HeldSecret?

    /// Stores a secret in a slot, replacing an earlier one. It expires when it was not loaded for use for `timeoutSeconds` (at least 1;
    /// nil: never).
    ///
    /// `lockEpoch` is the store's lock epoch before the passcode was checked. After a later lock by any process, the secret is never
    /// returned to a call that begins after that lock. Throws `.notAvailable` if the secret cannot be stored. Returns the ticket for `discard`.
    @discardableResult
    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64

    /// Removes the secrets in a slot for all keybags and all processes. Succeeds if there are none.
    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure)

    /// Removes the secrets in a slot for keybags of older generations.
    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure)

    /// Removes the secret that `load` returned with this ticket, unless it was replaced since.
    func discard(_ slot: KeyHolderSlot, ticket: UInt64)
}

/// The purpose of loading a held secret.
package enum KeyHolderPurpose: Sendable {
    /// Reading or writing an item.
    case use
    /// Reporting the state, and the work of an agent, which no person waits for.
    case inspection
}

/// The slots of a holder: two for class keys, because a lock may empty one and leave the other, and one that no lock empties.
package enum KeyHolderSlot: String, CaseIterable, Sendable {
    /// Class keys that are available only while the keychain is unlocked.
    case unlocked = "unlocked"
    /// Class keys that are available from the first unlock on.
    case firstUnlock = "first-unlock"
    /// The device secret, if its protector is slow. It stays until the system restarts.
    case device = "device"

    /// The slots that locking and unlocking affect.
    package static let ofClassKeys: [KeyHolderSlot] = [.unlocked, .firstUnlock]

    /// Whether every lock leaves the slot unchanged.
    package var survivesLocks: Bool { self == .device }
}

/// A secret loaded from a holder.
package struct HeldSecret: ~Copyable, Sendable {
    package let secret: SecretBytes
    /// Identifies this content for `discard`.
    package let ticket: UInt64
    /// The time without use after which it expires; nil: never.
    package let timeoutSeconds: UInt32?
    /// The lock epoch with which it was stored.
    package let lockEpoch: LockEpoch

    package init(secret: consuming SecretBytes, ticket: UInt64, timeoutSeconds: UInt32?, lockEpoch: LockEpoch) {
        self.secret = secret
        self.ticket = ticket
        self.timeoutSeconds = timeoutSeconds
        self.lockEpoch = lockEpoch
    }
}

/// Where a holder keeps unlocked keys.
package enum KeyHolderKind: Hashable, Sendable {
    /// The user's keyring in the kernel: an unlock is effective for all processes of the user that can open the store.
    case kernelKeyring
    /// The kernel's keyring in a user namespace other than the initial one: an unlock is effective only inside the namespace.
    case kernelKeyringOfUserNamespace
    /// The memory of this process: an unlock lasts as long as the process and is effective only in it.
    case processMemory
    /// The memory of keychaind: an unlock is effective for all processes of the user.
    case keychaind
}

/// Identifies a keybag of a store.
///
/// The generation alone does not: two processes may change the keybag at the same time, and only one of the results is stored.
package struct KeybagIdentity: Hashable, Sendable {
    /// Increases with each change.
    package let generation: UInt64
    /// The first bytes of the authentication code.
    ///
    /// Not secret.
    package let tag: UInt64

    package init(generation: UInt64, tag: UInt64 = 0) {
        self.generation = generation
        self.tag = tag
    }
}
