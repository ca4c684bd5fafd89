// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting

/// A good holder with one fault put in front of it.
struct BrokenKeyHolder: KeyHolder {
    enum Fault: CaseIterable {
        case hasOneSlot, keepsRemoved, discardsWhateverIsThere, discardsNothing, keepsTheFirst, forgetsTimeout, neverEnds, endsAlways
        case shortensSecrets, givesOneTicket, takesLookingForUse
        case mixesGenerations, removesOneGeneration
    }

    let good: any KeyHolder
    let fault: Fault?

    var kind: KeyHolderKind { good.kind }

    func forKeybag(_ mark: KeybagMark) -> any KeyHolder {
        BrokenKeyHolder(good: fault == .mixesGenerations ? good : good.forKeybag(mark), fault: fault)
    }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        guard let held = try good.load(used(slot), for: fault == .takesLookingForUse ? .use : purpose) else { return nil }
        let timeoutSeconds = fault == .forgetsTimeout ? nil : held.timeoutSeconds
        let ticket = fault == .givesOneTicket ? 1 : held.ticket
        // The bytes are copied within the closure.
        let secret = try unsafe held.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        return HeldSecret(secret: secret, ticket: ticket, timeoutSeconds: timeoutSeconds)
    }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        if fault == .keepsTheFirst, let ticket = try good.load(slot)?.ticket { return ticket }
        let seconds = fault == .neverEnds ? nil : fault == .endsAlways ? timeoutSeconds ?? 1 : timeoutSeconds
        // The bytes are copied within the closure.
        let copy = try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(
                copying: UnsafeRawBufferPointer(rebasing: bytes.prefix(fault == .shortensSecrets ? 512 : bytes.count)))
        }
        return try good.hold(copy, in: used(slot), timeoutSeconds: seconds, lockEpoch: lockEpoch)
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        switch fault {
        case .keepsRemoved: break
        case .removesOneGeneration:
            guard let ticket = try good.load(slot)?.ticket else { return }
            good.discard(slot, ticket: ticket)
        default: try good.remove(used(slot))
        }
    }

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try good.removeOlder(used(slot))
    }

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        switch fault {
        case .discardsWhateverIsThere: try? good.remove(slot)
        case .discardsNothing: break
        default: good.discard(used(slot), ticket: ticket)
        }
    }

    private func used(_ slot: KeyHolderSlot) -> KeyHolderSlot { fault == .hasOneSlot ? .unlocked : slot }
}
