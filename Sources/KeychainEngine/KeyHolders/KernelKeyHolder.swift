// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Holds keys in the kernel's keyring of the user: an unlock is seen by all processes of the user, until the system restarts.
///
/// The keys lie in the user keyring and every process of the user may read them, also one whose session has another keyring.
/// A key's time counts in whole seconds of the system's clock and ends up to a second late; it begins anew at a load, though
/// not more often than each second, or each fifth of the time where that is shorter.
package final class KernelKeyHolder: KeyHolder {
    package let kind: KeyHolderKind

    private let storeID: StoreID
    private let keybag: KeybagIdentity
    private let epochSource: LockEpochSource
    private let time: any ContinuousTime
    private let known = Mutex(KnownKeys())

    /// Whether this process may use the kernel's keyring.
    package static var isPossible: Bool { KernelKeyring.refusal == nil }

    /// How often a key that vanishes between finding and reading it is looked for again.
    private static let attemptLimit = 8

    /// `epochSource` is asked at each load: a lock may come from where this keyring is another one, or none.
    ///
    /// Throws `.notAvailable` where the kernel refuses its keyring.
    package convenience init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0), epochSource: @escaping LockEpochSource
    ) throws(KeychainFailure) {
        if let refusal = KernelKeyring.refusal {
            throw KeychainFailure(
                .notAvailable, "the kernel's keyring cannot be used here, as in many containers: \(refusal)")
        }
        self.init(
            storeID: storeID, keybag: keybag, epochSource: epochSource,
            isInUserNamespace: !CurrentProcess.isInInitialUserNamespace, time: SystemContinuousTime())
    }

    /// A holder that takes for granted what the other initialiser finds out.
    package init(
        storeID: StoreID, keybag: KeybagIdentity = KeybagIdentity(generation: 0), epochSource: @escaping LockEpochSource,
        isInUserNamespace: Bool,
        time: any ContinuousTime
    ) {
        self.storeID = storeID
        self.keybag = keybag
        self.epochSource = epochSource
        self.time = time
        kind = isInUserNamespace ? .kernelKeyringOfUserNamespace : .kernelKeyring
    }

    package func forKeybag(_ mark: KeybagIdentity) -> any KeyHolder {
        KernelKeyHolder(
            storeID: storeID, keybag: mark, epochSource: epochSource,
            isInUserNamespace: kind == .kernelKeyringOfUserNamespace, time: time)
    }

    package func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose) throws(KeychainFailure) -> HeldSecret? {
        try CurrentProcess.requireNotForked()
        // The serial number saves the search. Whatever is wrong with it, the search says what is there now.
        if let serial = known.withLock({ $0[slot]?.serial }), case .held(let content)? = try? read(serial) {
            return try heldSecret(content, serial, in: slot, for: purpose)
        }
        for _ in 0..<Self.attemptLimit {
            guard let serial = try search(slot) else { return nil }
            switch try read(serial) {
            case .held(let content): return try heldSecret(content, serial, in: slot, for: purpose)
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
        try CurrentProcess.requireNotForked()
        let content = try KernelKeyContent.encoded(secret, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
        do throws(Errno) {
            let now = time.nowNanoseconds()
            let serial = try KernelKeyring.hold(content, as: description(of: slot), timeoutSeconds: timeoutSeconds)
            known.withLock { $0[slot] = KnownKeys.Key(serial: serial, timeoutStartedAt: now) }
            return UInt64(serial)
        } catch {
            throw KeychainFailure(
                .notAvailable, "the kernel's keyring does not take the keys: \(error)", remedy: .makeRoomForKeys)
        }
    }

    package func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        known.withLock { $0[slot] = nil }
        try removeKeys(of: slot) { _ in true }
    }

    package func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) {
        try removeKeys(of: slot) { $0 < keybag.generation }
    }

    private func removeKeys(of slot: KeyHolderSlot, where isMeant: (UInt64) -> Bool) throws(KeychainFailure) {
        try CurrentProcess.requireNotForked()
        let prefix = descriptionPrefix(of: slot)
        do throws(Errno) {
            // More than one look when others add at the same time.
            for _ in 0..<Self.attemptLimit {
                let serials = try KernelKeyring.serials { description in
                    // What has the prefix and no number behind it is nobody's, and goes with the others.
                    description.hasPrefix(prefix) && isMeant(UInt64(description.dropFirst(prefix.count).prefix { $0 != ":" }) ?? 0)
                }
                var hasRemoved = false
                for serial in serials {
                    do throws(Errno) {
                        try KernelKeyring.invalidate(serial)
                        hasRemoved = true
                    } catch {
                        if !error.isMissingKey { throw error }
                    }
                }
                guard hasRemoved else { return }
            }
        } catch {
            throw KeychainFailure(.notAvailable, "the keys stay in the kernel's keyring: \(error)")
        }
        throw KeychainFailure(.notAvailable, "the kernel's keyring is filled faster than it can be emptied")
    }

    package func discard(_ slot: KeyHolderSlot, ticket: UInt64) {
        guard let serial = KernelKeyring.Serial(exactly: ticket), !CurrentProcess.isForked else { return }
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

    /// What a key is found by.
    package func description(of slot: KeyHolderSlot) -> String {
        "\(descriptionPrefix(of: slot))\(keybag.generation):\(String(keybag.tag, radix: 16))"
    }

    /// What the descriptions of all generations begin with.
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

    /// What a load gives of what was read, when no lock has come since.
    private func heldSecret(
        _ content: consuming KernelKeyContent, _ serial: KernelKeyring.Serial, in slot: KeyHolderSlot, for purpose: KeyHolderPurpose
    ) throws(KeychainFailure) -> HeldSecret? {
        // Read after the content: what was held before a lock is refused, whoever held it while the lock was at work.
        if !slot.survivesLocks {
            guard content.lockEpoch.keeps(slot, at: try epochSource()) else {
                invalidate(serial)
                return nil
            }
        }
        if purpose == .use { arm(serial, in: slot, timeoutSeconds: content.timeoutSeconds) }
        let timeoutSeconds = content.timeoutSeconds
        return HeldSecret(secret: content.secret, ticket: UInt64(serial), timeoutSeconds: timeoutSeconds)
    }

    /// Lets the key's time begin anew, when that has not just been done.
    private func arm(_ serial: KernelKeyring.Serial, in slot: KeyHolderSlot, timeoutSeconds: UInt32?) {
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
        // What was read was held then. If the key has gone since, the next load says so.
        if isDue, let timeoutSeconds { try? KernelKeyring.setTimeout(serial, seconds: timeoutSeconds) }
    }

    /// A key that is gone already is what was wanted.
    private func invalidate(_ serial: KernelKeyring.Serial) {
        try? KernelKeyring.invalidate(serial)
    }

    private static func readFailure(_ error: Errno) -> KeychainFailure {
        KeychainFailure(.notAvailable, "the kernel's keyring does not say whether it holds the keys: \(error)")
    }
}

/// The keys that this process has met, so that it need not search for them.
private struct KnownKeys {
    struct Key {
        let serial: KernelKeyring.Serial
        /// When its time last began, as far as this process knows.
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

/// What one key of the kernel's keyring holds: the secret, and what a holder must know of it.
///
/// format (1) = 1 ‖ timeout in seconds (4; 0: none) ‖ lock epoch (8) ‖ secret; numbers little-endian.
struct KernelKeyContent: ~Copyable {
    static let format: UInt8 = 1
    static let headerByteCount = 13

    let timeoutSeconds: UInt32?
    let lockEpoch: LockEpoch
    let secret: SecretBytes

    enum Reading: ~Copyable {
        case content(KernelKeyContent)
        /// Of a newer version's making: not for us, and not ours to remove.
        case newerFormat
        case malformed
    }

    /// Reads what `encoded` wrote.
    ///
    /// Throws when there is no memory for the secret.
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
