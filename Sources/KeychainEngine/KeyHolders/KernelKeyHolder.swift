// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem

/// A key holder in the kernel's keyring of the user: an unlock is effective for all processes of the user until the system restarts.
///
/// The keys are in the user keyring. Every process of the user can read their content, even if its session has another keyring, and in another
/// container. The content is sealed: see `HolderPayloadCipher`.
/// The timeout of a key has a resolution of one second and may end up to a second late. A load restarts it, but at most once per second,
/// or once per fifth of the timeout if that is shorter.
package final class KernelKeyHolder: KeyHolder {
    package let kind: KeyHolderKind

    private let storeID: StoreID
    private let keybag: KeybagIdentity
    private let time: any ContinuousTime
    private let known = LockedValue(KnownKeys())

    /// Whether this process may use the kernel's keyring.
    package static var isPossible: Bool { KernelKeyring.refusal == nil }

    /// How often a search is repeated if another process removes or adds keys in the meantime.
    private static let attemptLimit = 8

    /// Throws `.notAvailable` if the kernel refuses its keyring.
    package convenience init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0)
    ) throws(KeychainFailure) {
        if let refusal = KernelKeyring.refusal {
            throw KeychainFailure(
                .notAvailable, "the kernel's keyring cannot be used here, as in many containers: \(refusal)",
                cause: .system(errno: refusal.rawValue))
        }
        self.init(
            storeID: storeID, keybag: keybag, isInUserNamespace: !CurrentProcess.isInInitialUserNamespace, time: SystemContinuousTime())
    }

    /// Creates a holder without checking whether the kernel allows it.
    package init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0), isInUserNamespace: Bool, time: any ContinuousTime
    ) {
        self.storeID = storeID
        self.keybag = keybag
        self.time = time
        kind = isInUserNamespace ? .kernelKeyringOfUserNamespace : .kernelKeyring
    }

    package func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder {
        KernelKeyHolder(
            storeID: storeID, keybag: identity, isInUserNamespace: kind == .kernelKeyringOfUserNamespace, time: time)
    }

    /// The epochs are compared because the process that locks may have another keyring, or none.
    package func load(
        _ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldSecret? {
        try ForkDetection.requireNotForked()
        // A known serial number saves the search. If it is no longer valid, search.
        if let serial = known.withLock({ $0[slot]?.serial }), case .held(let content)? = try? read(serial) {
            return heldSecret(content, serial, in: slot, for: purpose, lockEpoch)
        }
        for _ in 0..<Self.attemptLimit {
            guard let serial = try search(slot) else { return nil }
            switch try read(serial) {
            case .held(let content): return heldSecret(content, serial, in: slot, for: purpose, lockEpoch)
            case .newerFormat: return nil
            case .malformed:
                invalidate(serial)
                return nil
            case .gone: continue
            }
        }
        throw KeychainFailure(.notAvailable, "the keys in the kernel's keyring change faster than they can be read")
    }

    package func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        try ForkDetection.requireNotForked()
        let content = try KernelKeyContent.encoded(secret, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
        do throws(Errno) {
            let now = time.nowNanoseconds()
            let serial = try KernelKeyring.hold(content, as: description(of: slot), timeoutSeconds: timeoutSeconds)
            known.withLock { $0[slot] = KnownKeys.Key(serial: serial, timeoutStartedAt: now) }
            return UInt64(serial)
        } catch {
            throw KeychainFailure(
                .notAvailable, "the kernel's keyring refused the keys: \(error)", cause: .system(errno: error.rawValue),
                remedy: .makeRoomForKeys)
        }
    }

    package func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        known.withLock { $0[slot] = nil }
        try removeKeys(of: slot) { _ in true }
    }

    package func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try removeKeys(of: slot) { $0 < keybag.generation }
    }

    private func removeKeys(of slot: KeyHolderSlot, where matches: (UInt64) -> Bool) throws(KeychainFailure) {
        try ForkDetection.requireNotForked()
        let prefix = descriptionPrefix(of: slot)
        let isEmptied: Bool
        do throws(Errno) {
            isEmptied = try KernelKeyring.removeAll { () throws(Errno) in
                try KernelKeyring.serials { description in
                    // A description without a generation after the prefix is invalid and counts as generation 0.
                    description.hasPrefix(prefix) && matches(UInt64(description.dropFirst(prefix.count).prefix { $0 != ":" }) ?? 0)
                }
            } invalidating: { (serial) throws(Errno) in
                try KernelKeyring.invalidate(serial)
            }
        } catch {
            throw KeychainFailure(
                .notAvailable, "the keys cannot be removed from the kernel's keyring: \(error)", cause: .system(errno: error.rawValue))
        }
        guard isEmptied else {
            throw KeychainFailure(.notAvailable, "the kernel's keyring is filled faster than it can be emptied")
        }
    }

    package func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        guard let serial = KernelKeyring.Serial(exactly: ticket), !ForkDetection.isForkedChild else { return }
        known.withLock { known in
            if known[slot]?.serial == serial { known[slot] = nil }
        }
        invalidate(serial)
    }

    private enum KeyState: ~Copyable {
        case held(KernelKeyContent)
        case newerFormat
        case malformed
        case gone
    }

    /// The description that identifies a key.
    package func description(of slot: KeyHolderSlot) -> String {
        "\(descriptionPrefix(of: slot))\(keybag.generation):\(String(keybag.tag, radix: 16))"
    }

    /// The common prefix of the descriptions for all generations of the keybag.
    private func descriptionPrefix(of slot: KeyHolderSlot) -> String {
        "keychain:\(storeID.hexadecimal):\(slot.rawValue):"
    }

    private func search(_ slot: KeyHolderSlot) throws(KeychainFailure) -> KernelKeyring.Serial? {
        do throws(Errno) {
            return try KernelKeyring.search(description(of: slot))
        } catch {
            guard !error.isMissingKey else { return nil }
            throw Self.readFailure(error)
        }
    }

    private func read(_ serial: KernelKeyring.Serial) throws(KeychainFailure) -> KeyState {
        do throws(Errno) {
            // The bytes are read within the closure.
            let reading = try unsafe KernelKeyring.withContent(of: serial) { (bytes) throws(KeychainFailure) in
                try unsafe KernelKeyContent.read(bytes)
            }
            switch consume reading {
            case .content(let content): return .held(content)
            case .newerFormat: return .newerFormat
            case .malformed: return .malformed
            }
        } catch {
            guard !error.isMissingKey else { return .gone }
            throw Self.readFailure(error)
        }
    }

    /// Returns the result of a load; nil if the store was locked since the key was held.
    private func heldSecret(
        _ content: consuming KernelKeyContent, _ serial: KernelKeyring.Serial, in slot: KeyHolderSlot, for purpose: KeyHolderPurpose,
        _ lockEpoch: LockEpoch
    ) -> HeldSecret? {
        guard content.lockEpoch.isValid(for: slot, at: lockEpoch) else {
            if content.lockEpoch.isBefore(lockEpoch) { invalidate(serial) }
            return nil
        }
        if purpose == .use { restartTimeout(of: serial, in: slot, timeoutSeconds: content.timeoutSeconds) }
        let (timeoutSeconds, heldEpoch) = (content.timeoutSeconds, content.lockEpoch)
        return HeldSecret(secret: content.secret, ticket: UInt64(serial), timeoutSeconds: timeoutSeconds, lockEpoch: heldEpoch)
    }

    /// Restarts the timeout of the key, unless this was done recently.
    private func restartTimeout(of serial: KernelKeyring.Serial, in slot: KeyHolderSlot, timeoutSeconds: UInt32?) {
        let now = time.nowNanoseconds()
        let isDue = known.withLock { known in
            guard let timeoutSeconds else {
                known[slot] = KnownKeys.Key(serial: serial, timeoutStartedAt: now)
                return false
            }
            let pause = min(1_000_000_000, UInt64(timeoutSeconds) * 200_000_000)
            if let key = known[slot], key.serial == serial, now &- key.timeoutStartedAt < pause { return false }
            known[slot] = KnownKeys.Key(serial: serial, timeoutStartedAt: now)
            return true
        }
        // Best effort: the content was valid when it was read. If the key was removed meanwhile, the next load detects it.
        if isDue, let timeoutSeconds { try? KernelKeyring.setTimeout(serial, seconds: timeoutSeconds) }
    }

    /// Invalidates a key; succeeds if it is gone already.
    private func invalidate(_ serial: KernelKeyring.Serial) {
        try? KernelKeyring.invalidate(serial)
    }

    private static func readFailure(_ error: Errno) -> KeychainFailure {
        KeychainFailure(.notAvailable, "the kernel's keyring cannot be read: \(error)", cause: .system(errno: error.rawValue))
    }
}

/// The serial numbers of the keys that this process has used, which save searches.
private struct KnownKeys {
    struct Key {
        let serial: KernelKeyring.Serial
        /// When this process last restarted the timeout.
        let timeoutStartedAt: UInt64
    }

    private var unlocked: Key?
    private var firstUnlock: Key?
    private var device: Key?

    subscript(slot: KeyHolderSlot) -> Key? {
        get {
            switch slot {
            case .unlocked: unlocked
            case .firstUnlock: firstUnlock
            case .device: device
            }
        }
        set {
            switch slot {
            case .unlocked: unlocked = newValue
            case .firstUnlock: firstUnlock = newValue
            case .device: device = newValue
            }
        }
    }
}

/// The content of a key in the kernel's keyring.
///
/// Layout: format (1) = 1 ‖ timeout in seconds (4; 0: none) ‖ lock epoch (8) ‖ secret; numbers little-endian.
struct KernelKeyContent: ~Copyable {
    static let format: UInt8 = 1
    static let headerByteCount = 13

    let timeoutSeconds: UInt32?
    let lockEpoch: LockEpoch
    let secret: SecretBytes

    enum Reading: ~Copyable {
        case content(KernelKeyContent)
        /// Written by a newer version. It is neither used nor removed.
        case newerFormat
        case malformed
    }

    /// Decodes the result of `encoded`.
    ///
    /// Throws if there is no memory for the secret.
    static func read(_ bytes: UnsafeRawBufferPointer) throws(KeychainFailure) -> Reading {
        guard let format = unsafe bytes.first, format <= Self.format else { return unsafe bytes.isEmpty ? .malformed : .newerFormat }
        guard format == Self.format, bytes.count > headerByteCount else { return .malformed }
        // The count is checked above; loadUnaligned has no alignment rule.
        let timeout = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self))
        let epoch = unsafe Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 5, as: Int64.self))
        return .content(
            KernelKeyContent(
                timeoutSeconds: timeout == 0 ? nil : timeout, lockEpoch: LockEpoch(rawValue: epoch),
                secret: try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(headerByteCount)))))
    }

    static func encoded(
        _ secret: borrowing SecretBytes, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> SecretBytes {
        var header = [format]
        header.append(littleEndian: timeoutSeconds ?? 0)
        header.append(littleEndian: lockEpoch.rawValue)
        return try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(byteCount: headerByteCount + bytes.count) { buffer in
                // Header and secret fill the buffer exactly.
                unsafe buffer.copyBytes(from: header)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(headerByteCount)).copyMemory(from: bytes)
            }
        }
    }
}
