// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// All class keys of one keybag in hand, whatever the holder holds: for unlocking, rewrapping, restoring, removing a passcode.
///
/// Keep one no longer than that takes.
package final class UnlockedKeys: Sendable {
    let document: KeybagDocument
    private let keys: [ClassKeyID: ClassKeyBox]

    init(document: KeybagDocument, keys: [ClassKeyID: ClassKeyBox]) {
        self.document = document
        self.keys = keys
    }

    /// What the holder is to hold in a slot.
    ///
    /// Throws `.internal` when no passcode is set: then nothing is held.
    package func payload(for slot: KeyHolderSlot) throws(KeychainFailure) -> SecretBytes {
        guard document.content.passcode != nil else {
            throw KeychainFailure(.internal, "without a passcode no key is given to a holder")
        }
        let payload = HolderPayload(of: document, slot: slot)
        return try payload.filled(with: payload.ids.compactMap { keys[$0] })
    }

    func key(_ id: ClassKeyID) throws(KeychainFailure) -> ClassKeyBox {
        guard let key = keys[id] else { throw KeybagDocument.noSuchKey(id) }
        return key
    }
}

extension UnlockedKeys: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }

    package func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = document.newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set")
        }
        return generation
    }

    package func availability(of accessibility: Accessibility, generation: UInt32) -> KeyAvailability {
        keys[ClassKeyID(accessibility, generation: generation)] == nil ? .missing : .available
    }

    package func withClassKey<Result>(
        for accessibility: Accessibility, generation: UInt32,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try body(key(ClassKeyID(accessibility, generation: generation)).classKey)
    }

    package func forOneCall() -> any KeyProvider { self }
}
