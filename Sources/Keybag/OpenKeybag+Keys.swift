// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

extension OpenKeybag: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }

    package func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = document.newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet)
        }
        return generation
    }

    package func forOneCall() -> any KeyProvider { isPasscodeSet ? KeysForOneCall(of: self) : self }

    package func availability(of accessibility: Accessibility, generation: UInt32) -> KeyAvailability {
        availability(of: ClassKeyID(accessibility, generation: generation), loading: loadForUse)
    }

    package func withClassKey<Result>(
        for accessibility: Accessibility, generation: UInt32,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try withClassKey(ClassKeyID(accessibility, generation: generation), loading: loadForUse, body)
    }

    /// As above, with another way to the holder.
    func availability(
        of id: ClassKeyID, loading load: (KeyHolderSlot) throws(KeychainFailure) -> HeldKeys?
    ) -> KeyAvailability {
        if deviceBoundKeys[id] != nil { return .available }
        guard let slot = holderSlot(of: id) else { return .missing }
        do throws(KeychainFailure) {
            return try load(slot) == nil ? .locked : .available
        } catch {
            return .locked
        }
    }

    /// As above, with another way to the holder.
    func withClassKey<Result>(
        _ id: ClassKeyID, loading load: (KeyHolderSlot) throws(KeychainFailure) -> HeldKeys?,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        if let key = deviceBoundKeys[id] { return try body(key.classKey) }
        guard let slot = holderSlot(of: id) else { throw KeybagDocument.noSuchKey(id) }
        guard let keys = try load(slot) else {
            let time = slot == .firstUnlock ? "after the first unlock" : "when unlocked"
            throw KeychainFailure(.interactionNotAllowed, "the keychain is locked for items that are accessible \(time)")
        }
        return try keys.withClassKey(id, body)
    }

    /// Where a key of this keybag is held; nil when it has no such key.
    private func holderSlot(of id: ClassKeyID) -> KeyHolderSlot? {
        heldIDs.contains(id) ? id.accessibility.holderSlot : nil
    }
}
