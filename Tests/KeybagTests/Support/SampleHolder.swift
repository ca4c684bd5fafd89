// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Synchronization

/// A holder in a test's hands: gives what it was given, and can fail.
final class SampleHolder: KeyHolder {
    private struct Content {
        var bytes: [UInt8]
        var ticket: UInt64
        var timeoutSeconds: UInt32?
    }

    private struct State {
        var contents: [KeyHolderSlot: Content] = [:]
        var lastTicket: UInt64 = 0
        var failure: KeychainFailure?
        var loadCount = 0
        var replacement: (slot: KeyHolderSlot, bytes: [UInt8])?
    }

    private let state = Mutex(State())

    var kind: KeyHolderKind { .processMemory }

    /// What every load throws from now on.
    var failure: KeychainFailure? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    var loadCount: Int { state.withLock { $0.loadCount } }

    func bytes(in slot: KeyHolderSlot) -> [UInt8]? {
        state.withLock { $0.contents[slot]?.bytes }
    }

    /// Holds bytes that need not be a payload.
    func put(_ bytes: [UInt8]?, in slot: KeyHolderSlot, timeoutSeconds: UInt32? = nil) {
        state.withLock { state in
            state.lastTicket += 1
            state.contents[slot] = bytes.map { Content(bytes: $0, ticket: state.lastTicket, timeoutSeconds: timeoutSeconds) }
        }
    }

    /// Lets other bytes take the place of the present ones once these were loaded: an unlock in another process does that.
    func replaceAfterLoad(with bytes: [UInt8], in slot: KeyHolderSlot) {
        state.withLock { $0.replacement = (slot, bytes) }
    }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        let (content, failure, replacement) = state.withLock { state in
            defer { state.replacement = nil }
            state.loadCount += 1
            return (state.contents[slot], state.failure, state.replacement)
        }
        if let replacement { put(replacement.bytes, in: replacement.slot) }
        if let failure { throw failure }
        guard let content else { return nil }
        // The bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: content.bytes.count) { unsafe $0.copyBytes(from: content.bytes) }
        return HeldSecret(secret: secret, ticket: content.ticket, timeoutSeconds: content.timeoutSeconds)
    }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        put(secret.copiedBytes(), in: slot, timeoutSeconds: timeoutSeconds)
        return state.withLock { $0.lastTicket }
    }

    /// One place for all generations: what is found there has to be told apart by its content.
    func forKeybag(_ mark: KeybagMark) -> any KeyHolder { self }

    func removeOlder(_ slot: KeyHolderSlot) {}

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        put(nil, in: slot)
    }

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        state.withLock { state in
            if state.contents[slot]?.ticket == ticket { state.contents[slot] = nil }
        }
    }
}

extension SecretBytes {
    /// A copy of the secret, to be compared.
    borrowing func copiedBytes() -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe withBytes { unsafe Array($0) }
    }
}
