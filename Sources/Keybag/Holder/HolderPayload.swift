// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
internal import KeychainCore

/// The class keys of one slot of one keybag, as a holder's payload contains them when it is open: see `HolderPayloadCipher`.
///
///     each key: accessibility (1) ‖ generation (4) ‖ class key (32), in ascending order of class and generation
///
/// Everything except the keys follows from the keybag. So opened keys are compared rather than parsed, and located by position. They are
/// compared although they are authenticated: a process that has the device secret, but not the passcode, can seal other keys.
struct HolderPayload: Sendable {
    private static let keyByteCount = 37

    private let document: KeybagDocument
    /// The entries of the slot's keys, in order.
    private let entries: [KeybagDocument.ClassKeyEntry]

    init(of document: KeybagDocument, slot: KeyHolderSlot) {
        self.document = document
        entries = document.classKeys.filter { $0.id.accessibility.holderSlot == slot }
    }

    var ids: [ClassKeyID] { entries.map(\.id) }

    private var byteCount: Int { entries.count * Self.keyByteCount }

    private static func label(of id: ClassKeyID) -> [UInt8] {
        var bytes = [id.accessibility.code]
        bytes.append(littleEndian: id.generation)
        return bytes
    }

    /// Returns these keys as one secret, one for each of `ids` and in that order.
    func filled(with keys: [SharedClassKey]) throws(KeychainFailure) -> SecretBytes {
        guard keys.map(\.id) == ids else {
            throw KeychainFailure(.internal, "the keys for a holder are not those of the keybag")
        }
        // The size of the region is the sum of all parts, so each copy stays within it.
        return try unsafe SecretBytes(byteCount: byteCount) { buffer in
            for (index, key) in keys.enumerated() {
                let range = Self.range(ofKeyAt: index)
                let labelStart = range.lowerBound - (Self.keyByteCount - ClassKey.byteCount)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[labelStart...]).copyBytes(from: Self.label(of: key.id))
                unsafe key.classKey.secret.withBytes { secret in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[range]).copyMemory(from: secret)
                }
            }
        }
    }

    /// Whether these are the keybag's keys of the slot.
    func isValid(_ payload: borrowing SecretBytes) throws(KeychainFailure) -> Bool {
        guard payload.byteCount == byteCount else { return false }
        for (index, entry) in entries.enumerated() {
            let key = Self.range(ofKeyAt: index)
            // The bytes are read within the closure.
            let isNamed = unsafe payload.withBytes { bytes in
                unsafe bytes[..<key.lowerBound].suffix(Self.keyByteCount - ClassKey.byteCount).elementsEqual(Self.label(of: entry.id))
            }
            guard isNamed else { return false }
            let check = try ClassKeyCheck.value(of: try Self.key(at: index, in: payload), entry.id, storeID: document.storeID)
            guard check == entry.checkValue else { return false }
        }
        return true
    }

    /// Returns one of the keys that were found valid.
    static func key(at index: Int, in payload: borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes {
        let range = range(ofKeyAt: index)
        guard index >= 0, range.upperBound <= payload.byteCount else { throw KeychainFailure(.internal, "a holder's payload is too short") }
        // Within the payload, by the check above.
        return try unsafe SecretBytes(byteCount: ClassKey.byteCount) { buffer in
            unsafe payload.withBytes { unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[range])) }
        }
    }

    private static func range(ofKeyAt index: Int) -> Range<Int> {
        let end = (index + 1) * keyByteCount
        return (end - ClassKey.byteCount)..<end
    }
}

extension ItemAccessibility {
    /// The slot of the class's keys while a passcode is set; nil for the classes that no lock affects.
    var holderSlot: KeyHolderSlot? {
        switch self {
        case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: .unlocked
        case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: .firstUnlock
        case .always, .alwaysThisDeviceOnly: nil
        }
    }
}
