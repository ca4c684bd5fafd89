// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Holds keys in this process's memory: an unlock lasts as long as the process, and no other process sees it.
///
/// For where the kernel's keyring is refused, and for tests. What is held belongs to the store: every holder of that store in
/// this process gives it out. Each load asks the store whether it was locked since; so does a thread, for when nobody loads.
package struct ProcessMemoryKeyHolder: KeyHolder {
    package var kind: KeyHolderKind { .processMemory }

    private let storeID: StoreID
    private let keybag: KeybagMark
    private let epochSource: LockEpochSource
    private let keys: ProcessMemoryKeys

    /// Where nothing can be read from `epochSource` for some seconds, nothing stays held.
    package init(
        storeID: StoreID, keybag: KeybagMark = KeybagMark(generation: 0), epochSource: @escaping LockEpochSource,
        keys: ProcessMemoryKeys = .ofThisProcess
    ) {
        self.storeID = storeID
        self.keybag = keybag
        self.epochSource = epochSource
        self.keys = keys
    }

    package func forKeybag(_ mark: KeybagMark) -> any KeyHolder {
        ProcessMemoryKeyHolder(storeID: storeID, keybag: mark, epochSource: epochSource, keys: keys)
    }

    private func place(_ slot: KeyHolderSlot) -> ProcessMemoryKeys.Place {
        ProcessMemoryKeys.Place(slot: slot, keybag: keybag)
    }

    package func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        try ForkedProcess.refuse()
        return try keys.load(place(slot), of: storeID, for: purpose, epochSource: epochSource)
    }

    package func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        try ForkedProcess.refuse()
        return try keys.hold(
            secret, in: place(slot), of: storeID, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch, epochSource: epochSource)
    }

    package func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try ForkedProcess.refuse()
        keys.remove(slot, of: storeID)
    }

    package func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try ForkedProcess.refuse()
        keys.remove(slot, of: storeID, before: keybag.generation)
    }

    package func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        guard (try? ForkedProcess.refuse()) != nil else { return }
        keys.remove(place(slot), of: storeID, ticket: ticket)
    }
}
