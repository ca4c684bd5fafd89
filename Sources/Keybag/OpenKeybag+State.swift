// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What a keybag says of its passcode and of its lock.
extension OpenKeybag {
    package var mark: KeybagMark { document.mark }

    package var isPasscodeSet: Bool { document.content.passcode != nil }

    /// Nil while no passcode is set.
    package var passcodeCost: PasscodeCost? { document.content.passcode?.cost }

    /// The newest generation of the class keys that a passcode protects, or would protect.
    package var currentPasscodeGeneration: UInt32 {
        document.classKeys.filter { $0.id.accessibility.holderSlot != nil }.map(\.id.generation).max() ?? 0
    }

    /// Whether there are class keys that serve old rows only.
    package var holdsOlderGenerations: Bool {
        document.classKeys.contains { $0.id.generation != document.newestGeneration(of: $0.id.accessibility) }
    }

    /// Asks the holder, which does not count as use of what it holds.
    ///
    /// Throws `.interactionNotAllowed` when the holder cannot be asked.
    package func lockState() throws(KeychainFailure) -> LockState {
        guard isPasscodeSet else { return .unlocked }
        if try load(.unlocked, for: .inspection) != nil { return .unlocked }
        return try load(.firstUnlock, for: .inspection) == nil ? .neverUnlocked : .locked
    }

    /// When the present unlock ends by itself; nil while locked or without a passcode.
    ///
    /// Asks the holder, which does not count as use of what it holds. Throws as `lockState` does.
    package func autoLock() throws(KeychainFailure) -> AutoLock? {
        try load(.unlocked, for: .inspection)?.autoLock
    }
}
