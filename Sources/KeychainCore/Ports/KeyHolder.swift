// SPDX-License-Identifier: Apache-2.0

/// Keeps the class keys of an unlocked keychain between calls, and lets go of them when it is locked.
///
/// What it holds is opaque to it. One holder serves one store, and one keybag of it: what is held for different keybags lies side
/// by side, so that a change takes nothing from those who have not noticed it yet, nor from another change at the same time.
package protocol KeyHolder: Sendable {
    var kind: KeyHolderKind { get }

    /// The holder of the same store for another keybag.
    func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder

    /// What is held there; nil when nothing is held, or no longer.
    ///
    /// Loading for use begins its time anew; whoever only looks does not keep a keychain unlocked. Throws when it cannot be said.
    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret?

    /// Holds a secret in the place of what was there, until it has not been loaded for `timeoutSeconds` (at least 1; nil: until
    /// it is removed).
    ///
    /// `lockEpoch` is the store's count of locks when the passcode was checked: what was held before a later lock is not given
    /// out, whoever locked, and from wherever. Throws `.notAvailable` when nothing can be held. Returns the ticket for `discard`.
    @discardableResult
    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64

    /// Lets go of what is held there, for every keybag and for every process that it is held for.
    ///
    /// Nothing there is success.
    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure)

    /// Lets go of what is held there for keybags of older generations.
    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure)

    /// Lets go of exactly what `load` gave, and not of what has taken its place since.
    func discard(_ slot: KeyHolderSlot, ticket: UInt64)
}

/// What for a held secret is asked.
package enum KeyHolderPurpose: Sendable {
    /// An item is read or written.
    case use
    /// Somebody wants to know the state.
    case inspection
}

/// Two places for class keys, because a lock empties the one and leaves the other, and one that no lock empties.
package enum KeyHolderSlot: String, CaseIterable, Sendable {
    /// Keys that are there only while the keychain is unlocked.
    case unlocked = "unlocked"
    /// Keys that stay from the first unlock on.
    case firstUnlock = "first-unlock"
    /// The device secret, where asking its protector is slow; it stays until the system restarts.
    case device = "device"

    /// Where class keys are: what locks and unlocks are about.
    package static let ofClassKeys: [KeyHolderSlot] = [.unlocked, .firstUnlock]

    /// Whether what is held there stays through every lock.
    package var survivesLocks: Bool { self == .device }
}

/// What a holder gave.
package struct HeldSecret: ~Copyable, Sendable {
    package let secret: SecretBytes
    /// Names this very content for `discard`.
    package let ticket: UInt64
    /// After how long without use it goes; nil: never by itself.
    package let timeoutSeconds: UInt32?

    package init(secret: consuming SecretBytes, ticket: UInt64, timeoutSeconds: UInt32?) {
        self.secret = secret
        self.ticket = ticket
        self.timeoutSeconds = timeoutSeconds
    }
}

/// Where unlocked keys are.
package enum KeyHolderKind: Hashable, Sendable {
    /// The kernel's keyring of this user: an unlock is seen by all processes of the user.
    case kernelKeyring
    /// The same, of another user namespace than the machine's first: an unlock outside it is not seen here, nor one here outside.
    case kernelKeyringOfUserNamespace
    /// This process's memory: an unlock lasts as long as the process and is seen by no other.
    case processMemory
}

/// Tells one keybag of a store from every other, those of the same generation too: two processes may change it at the same time, and
/// only one of the two becomes the store's.
package struct KeybagIdentity: Hashable, Sendable {
    /// Rises with each change.
    package let generation: UInt64
    /// From the code that authenticates the keybag; no secret.
    package let tag: UInt64

    package init(generation: UInt64, tag: UInt64 = 0) {
        self.generation = generation
        self.tag = tag
    }
}
