// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import Synchronization
import Testing

@testable import Keybag

/// A store with a passcode, and all of its secrets.
final class PasscodeStore: Sendable {
    static let passcode = "12345"
    /// The lowest permitted cost, because these tests derive often.
    static let cost = PasscodeCost(roundsExponent: 10, blockSize: 1, parallelism: 1) ?? .standard
    static let lockEpoch = KeyHolderContract.lockEpoch

    let storeID = StoreID.random()
    let deviceSecret: SecretBytes
    /// The keybag before a passcode was set.
    let original: OpenKeybag
    let change: KeybagChange
    let keybag: OpenKeybag
    let holder = SampleHolder()

    init() throws {
        deviceSecret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret, protector: KeybagDocument.ProtectorRecord(kind: .keyFile))
        original = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret)
        change = try original.settingPasscode(Self.code(Self.passcode), cost: Self.cost, deviceSecret: deviceSecret)
        keybag = try OpenKeybag(
            copies: [change.document.encoded], storeID: storeID, deviceSecret: deviceSecret, holder: holder)
    }

    static func code(_ text: String) throws -> Passcode {
        let bytes = Array(text.utf8)
        // The bytes are copied within the closure.
        return try Passcode(normalized: unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) })
    }

    /// The keybag of another document of this store, with the same holder.
    func opening(_ document: KeybagDocument) throws -> OpenKeybag {
        try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret, holder: holder)
    }

    func unlockedKeys(_ passcode: String = passcode, of keybag: OpenKeybag? = nil) throws -> UnlockedKeys {
        try (keybag ?? self.keybag).unlockedKeys(passcode: Self.code(passcode), deviceSecret: deviceSecret)
    }

    /// Fills the holder, as unlocking does.
    func unlock(_ slots: [KeyHolderSlot] = KeyHolderSlot.ofClassKeys, timeoutSeconds: UInt32? = nil) throws {
        let keys = try unlockedKeys()
        for slot in slots {
            let payload = try keys.payload(for: slot, at: Self.lockEpoch)
            _ = try holder.hold(payload, in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: Self.lockEpoch)
        }
    }
}

extension KeyProvider {
    /// A copy of a class key for comparisons.
    func copiedKey(_ accessibility: ItemAccessibility, _ generation: UInt32) throws(KeychainFailure) -> [UInt8] {
        try withClassKey(for: accessibility, generation: generation) { (key: borrowing ClassKey) throws(KeychainFailure) in
            key.copiedBytes()
        }
    }

    /// All available keys.
    func copiedKeys(of document: KeybagDocument) throws(KeychainFailure) -> [ClassKeyID: [UInt8]] {
        var keys: [ClassKeyID: [UInt8]] = [:]
        for entry in document.classKeys { keys[entry.id] = try copiedKey(entry.id.accessibility, entry.id.generation) }
        return keys
    }
}

/// A store with the protector tpm2 and a passcode, with a simulated TPM.
struct ChipStore {
    let storeID = StoreID.random()
    let chip = InMemorySealingDevice()
    let deviceSecret: SharedSecretBytes
    let original: OpenKeybag
    let keybag: OpenKeybag

    init() throws {
        deviceSecret = SharedSecretBytes(try SecretBytes(randomByteCount: DeviceSecret.byteCount))
        let sealed = try chip.seal(deviceSecret.secret, authorization: .none)
        let document = try OpenKeybag.make(
            storeID: storeID, deviceSecret: deviceSecret.secret, protector: .init(sealedDeviceSecret: sealed))
        original = try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: deviceSecret.secret)
        let change = try original.settingPasscode(
            PasscodeStore.code(PasscodeStore.passcode), cost: PasscodeStore.cost, deviceSecret: deviceSecret.secret, device: chip)
        keybag = try OpenKeybag(copies: [change.document.encoded], storeID: storeID, deviceSecret: deviceSecret.secret)
    }

    func opening(_ document: KeybagDocument, _ deviceSecret: SharedSecretBytes? = nil) throws -> OpenKeybag {
        try OpenKeybag(copies: [document.encoded], storeID: storeID, deviceSecret: (deviceSecret ?? self.deviceSecret).secret)
    }

    func unlockedKeys(
        _ passcode: String = PasscodeStore.passcode, of keybag: OpenKeybag? = nil, on chip: (any SealingDevice)? = nil
    ) throws -> UnlockedKeys {
        try (keybag ?? self.keybag).unlockedKeys(
            passcode: PasscodeStore.code(passcode), deviceSecret: deviceSecret.secret, device: chip ?? self.chip)
    }
}

extension PasscodeKey {
    /// The key without a part in a TPM.
    static func derive(
        from passcode: borrowing Passcode, _ record: PasscodeRecord, deviceSecret: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> SecretBytes {
        try derive(from: passcode, record, deviceSecret: deviceSecret, storeID: storeID, with: { _ in nil }).key.copy()
    }
}

/// A key holder controlled by a test: returns what was stored, and can fail.
final class SampleHolder: KeyHolder {
    private struct Content {
        var bytes: [UInt8]
        var ticket: UInt64
        var timeoutSeconds: UInt32?
        var lockEpoch: LockEpoch
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

    /// The error of every subsequent load.
    var failure: KeychainFailure? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    var loadCount: Int { state.withLock { $0.loadCount } }

    func bytes(in slot: KeyHolderSlot) -> [UInt8]? {
        state.withLock { $0.contents[slot]?.bytes }
    }

    /// Stores bytes that need not be a valid payload.
    func put(_ bytes: [UInt8]?, in slot: KeyHolderSlot, timeoutSeconds: UInt32? = nil, lockEpoch: LockEpoch = .unused) {
        state.withLock { state in
            state.lastTicket += 1
            state.contents[slot] = bytes.map {
                Content(bytes: $0, ticket: state.lastTicket, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
            }
        }
    }

    /// Replaces the bytes after the next load, as an unlock in another process would.
    func replaceAfterLoad(with bytes: [UInt8], in slot: KeyHolderSlot) {
        state.withLock { $0.replacement = (slot, bytes) }
    }

    func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) throws(KeychainFailure) -> HeldSecret? {
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
        return HeldSecret(
            secret: secret, ticket: content.ticket, timeoutSeconds: content.timeoutSeconds, lockEpoch: content.lockEpoch)
    }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        put(secret.copiedBytes(), in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
        return state.withLock { $0.lastTicket }
    }

    /// One slot for all generations, so that the loader has to distinguish payloads by their content.
    func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder { self }

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

extension HolderPayloadCipher {
    /// The content of a payload; nil if it does not open.
    func openedBytes(
        _ payload: [UInt8], in slot: KeyHolderSlot, of keybag: KeybagIdentity, at lockEpoch: LockEpoch = .unused
    ) throws -> [UInt8]? {
        // Here and below: the region has the size of the bytes.
        let sealed = try unsafe SecretBytes(byteCount: payload.count) { unsafe $0.copyBytes(from: payload) }
        guard let opened = try open(sealed, in: slot, of: keybag, at: lockEpoch) else { return nil }
        return opened.copiedBytes()
    }

    /// The payload of a secret.
    func sealedBytes(
        _ bytes: [UInt8], in slot: KeyHolderSlot, of keybag: KeybagIdentity, at lockEpoch: LockEpoch = .unused,
        nonce: ArraySlice<UInt8>? = nil
    ) throws -> [UInt8] {
        let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
        guard let nonce else { return try seal(secret, in: slot, of: keybag, at: lockEpoch).copiedBytes() }
        return try seal(secret, in: slot, of: keybag, at: lockEpoch, nonce: Array(nonce)).copiedBytes()
    }
}

extension SecretBytes {
    /// A copy of the secret for comparisons.
    borrowing func copiedBytes() -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe withBytes { unsafe Array($0) }
    }
}
