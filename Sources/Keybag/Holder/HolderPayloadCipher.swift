// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// Seals what a key holder keeps for one store, so that a process with access to the key holder alone gets no key.
///
/// Containers of one user share the kernel's keyring, but not their files.
///
///     payload = format (1) = 2 ‖ nonce (12) ‖ ciphertext ‖ tag (16)
///     associated data = format (1) = 2 ‖ slot (1) ‖ store id (16) ‖ keybag generation (8) ‖ keybag tag (8) ‖ lock epoch (8)
///
/// With the lock epoch, a payload that was read before a lock cannot be put back as one of the time after it.
///
/// The cipher is AES-256-GCM with a random nonce. The key stays in the process after a lock, so no sealed payload does: every buffer that
/// contains one is wiped.
package final class HolderPayloadCipher: Sendable {
    package static let format: UInt8 = 2
    private static let nonceByteCount = 12
    private static let overhead = 1 + nonceByteCount + 16

    private let storeID: StoreID
    private let key: SecretBytes

    /// Creates the cipher of class keys, with a key from the device secret.
    init(deviceSecret: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) {
        self.storeID = storeID
        key = try KeyPurpose.heldClassKeys.derive(from: deviceSecret, storeID: storeID)
    }

    /// Creates the cipher of the device secret itself, with a key from its sealed form in the keybag.
    ///
    /// That form is not secret, but only a process that can read the store has it.
    package init(sealedDeviceSecret: SealedObject, storeID: StoreID) throws(KeychainFailure) {
        self.storeID = storeID
        let encoded = KeybagDocument.ProtectorRecord(sealedDeviceSecret: sealedDeviceSecret).parameters
        // The region has the size of the encoded object.
        let secret = try unsafe SecretBytes(byteCount: encoded.count) { unsafe $0.copyBytes(from: encoded) }
        key = try KeyPurpose.heldDeviceSecret.derive(from: secret, storeID: storeID)
    }

    /// Seals a secret for a slot of a keybag's key holder.
    package func seal(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, of keybag: KeybagIdentity, at lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> SecretBytes {
        let associatedData = associatedData(slot, keybag, lockEpoch)
        let payload = try seal(secret, associatedData, AES.GCM.Nonce())
        // swift-crypto frees copies of the nonce and the ciphertext without wiping them. Sealing zeros of the same size overwrites them.
        let zeros = try unsafe SecretBytes(byteCount: secret.byteCount) { _ in }
        _ = try seal(zeros, associatedData, AES.GCM.Nonce())
        return payload
    }

    /// Seals a secret with a nonce that is used once.
    func seal(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, of keybag: KeybagIdentity, at lockEpoch: LockEpoch, nonce: [UInt8]
    ) throws(KeychainFailure) -> SecretBytes {
        do {
            return try seal(secret, associatedData(slot, keybag, lockEpoch), AES.GCM.Nonce(data: nonce))
        } catch {
            throw KeychainFailure(.internal, "the keys for a holder could not be sealed")
        }
    }

    private func seal(
        _ secret: borrowing SecretBytes, _ associatedData: [UInt8], _ nonce: AES.GCM.Nonce
    ) throws(KeychainFailure) -> SecretBytes {
        defer { SecretArena.wipeStackOfCipher() }
        guard var sealed = sealed(secret, associatedData, nonce) else {
            throw KeychainFailure(.internal, "the keys for a holder could not be sealed")
        }
        defer { sealed.wipe() }
        // The region has room for the format and all sealed bytes.
        return try unsafe SecretBytes(byteCount: 1 + sealed.count) { buffer in
            unsafe buffer[0] = Self.format
            unsafe sealed.withUnsafeBytes { unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[1...]).copyMemory(from: $0) }
        }
    }

    // Not inlined, so that its stack frame lies below the caller's, where the wipe reaches it.
    @inline(never)
    private func sealed(_ secret: borrowing SecretBytes, _ associatedData: [UInt8], _ nonce: AES.GCM.Nonce) -> Data? {
        // The bytes are read within the closure. The caller wipes the buffer, which nothing else refers to then.
        unsafe secret.withBytes { bytes in
            try? unsafe AES.GCM.seal(bytes, using: SymmetricKey(key), nonce: nonce, authenticating: associatedData).combined
        }
    }

    /// Opens a payload; nil if it was sealed for another slot, store, keybag, or lock epoch, was altered, or has another format.
    package func open(
        _ payload: borrowing SecretBytes, in slot: KeyHolderSlot, of keybag: KeybagIdentity, at lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> SecretBytes? {
        // Reads the format only.
        guard payload.byteCount > Self.overhead, unsafe payload.withBytes({ unsafe $0[0] }) == Self.format else { return nil }
        defer { SecretArena.wipeStackOfCipher() }
        guard var opened = opened(payload, associatedData(slot, keybag, lockEpoch)) else { return nil }
        defer { opened.wipe() }
        // The region has the size of the plaintext.
        return try unsafe SecretBytes(byteCount: opened.count) { buffer in
            unsafe opened.withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
        }
    }

    // Not inlined, so that its stack frame lies below the caller's, where the wipe reaches it.
    @inline(never)
    private func opened(_ payload: borrowing SecretBytes, _ associatedData: [UInt8]) -> Data? {
        // The bytes are copied within the closure.
        var combined = unsafe payload.withBytes { unsafe Data($0[1...]) }
        defer { combined.wipe() }
        guard let box = try? AES.GCM.SealedBox(combined: combined) else { return nil }
        return try? AES.GCM.open(box, using: SymmetricKey(key), authenticating: associatedData)
    }

    private func associatedData(_ slot: KeyHolderSlot, _ keybag: KeybagIdentity, _ lockEpoch: LockEpoch) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(2 + StoreID.byteCount + 24)
        bytes.append(Self.format)
        bytes.append(slot.code)
        bytes.append(storeID)
        bytes.append(littleEndian: keybag.generation)
        // The first byte of the tag is the most significant one.
        bytes.append(littleEndian: keybag.tag.byteSwapped)
        bytes.append(littleEndian: lockEpoch.rawValue)
        return bytes
    }
}

extension HolderPayloadCipher {
    /// The nonce and the tag of a payload.
    ///
    /// Two authentic payloads under one key with the same nonce and tag have the same content.
    struct Seal: Equatable, Sendable {
        private let nonce: UInt64
        private let restOfNonce: UInt32
        private let tag: UInt64
        private let restOfTag: UInt64

        /// The payload must be one that was opened, so it has at least these bytes.
        init(of payload: borrowing SecretBytes) {
            // The bytes are copied within the closure; loads outside of them trap.
            (nonce, restOfNonce, tag, restOfTag) = unsafe payload.withBytes { bytes in
                unsafe (
                    bytes.loadUnaligned(fromByteOffset: 1, as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 9, as: UInt32.self),
                    bytes.loadUnaligned(fromByteOffset: bytes.count - 16, as: UInt64.self),
                    bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
                )
            }
        }
    }
}

extension KeyHolderSlot {
    /// The number of the slot in a payload's associated data, part of the format.
    fileprivate var code: UInt8 {
        switch self {
        case .unlocked: 1
        case .firstUnlock: 2
        case .device: 3
        }
    }
}

extension Data {
    /// Overwrites the bytes, provided that nothing else refers to them.
    fileprivate mutating func wipe() {
        // The access stays within the closure.
        unsafe withUnsafeMutableBytes { bytes in for index in bytes.indices { unsafe bytes[index] = 0 } }
    }
}
