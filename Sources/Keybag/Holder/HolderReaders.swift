// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A reader for each slot of class keys.
struct HolderReaders: Sendable {
    private let unlocked: HolderReader
    private let firstUnlock: HolderReader

    init(_ holder: any KeyHolder, of document: KeybagDocument) {
        unlocked = HolderReader(holder, slot: .unlocked, of: document)
        firstUnlock = HolderReader(holder, slot: .firstUnlock, of: document)
    }

    /// Nil for a slot that holds no class keys.
    subscript(slot: KeyHolderSlot) -> HolderReader? {
        switch slot {
        case .unlocked: unlocked
        case .firstUnlock: firstUnlock
        case .device: nil
        }
    }
}
