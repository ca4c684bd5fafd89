// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// All class keys of one keybag, independent of the holder: for unlocking, rewrapping, restoring, and removing a passcode.
///
/// Keep an instance no longer than the operation lasts.
package final class UnlockedKeys: Sendable {
    let document: KeybagDocument
    private let keys: [ClassKeyID: SharedClassKey]
    /// Nil without a passcode, and for keybags of versions without presence keys.
    let presence: PresenceKeyPair?
    /// The TPM's part of the passcode key; nil without a TPM.
    let passcodeSecret: PasscodeSecret?
    private let cipher: HolderPayloadCipher

    init(
        document: KeybagDocument, keys: [ClassKeyID: SharedClassKey], presence: PresenceKeyPair?, passcodeSecret: PasscodeSecret?,
        cipher: HolderPayloadCipher
    ) {
        self.document = document
        self.keys = keys
        self.presence = presence
        self.passcodeSecret = passcodeSecret
        self.cipher = cipher
    }

    /// The same without the keys of other classes, and without the presence key pair.
    private func limited(to classes: Set<ItemAccessibility>) -> UnlockedKeys {
        UnlockedKeys(
            document: document, keys: keys.filter { classes.contains($0.key.accessibility) }, presence: nil, passcodeSecret: nil,
            cipher: cipher)
    }

    /// Whether `presenceRelease` can succeed.
    package var hasPresenceKeyPair: Bool { presence != nil }

    /// The keys for items of these classes that require user presence.
    ///
    /// Throws `.authFailed` if the keybag has no presence key pair.
    package func presenceRelease(for classes: Set<ItemAccessibility>) throws(KeychainFailure) -> PresenceRelease {
        guard let presence else {
            throw KeychainFailure.passcodeNotSet()
        }
        // The bytes are copied within the closure.
        let privateKey = try unsafe presence.privateKey.withBytes { (bytes) throws(KeychainFailure) in
            try unsafe SecretBytes(copying: bytes)
        }
        return PresenceRelease(
            storeID: document.storeID, publicKey: presence.publicKey, privateKey: privateKey, classKeys: limited(to: classes),
            classes: classes)
    }

    /// The sealed keys to store in a slot of the holder.
    ///
    /// Throws `.internal` if no passcode is set or the slot is not one for class keys.
    package func payload(for slot: KeyHolderSlot, at lockEpoch: LockEpoch) throws(KeychainFailure) -> SecretBytes {
        guard document.content.passcode != nil, !slot.survivesLocks else {
            throw KeychainFailure(.internal, "without a passcode no key is given to a holder")
        }
        let payload = HolderPayload(of: document, slot: slot)
        return try cipher.seal(
            payload.filled(with: payload.ids.compactMap { keys[$0] }), in: slot, of: document.identity, at: lockEpoch)
    }

    func key(_ id: ClassKeyID) throws(KeychainFailure) -> SharedClassKey {
        guard let key = keys[id] else { throw KeybagDocument.noSuchKey(id) }
        return key
    }
}

extension UnlockedKeys: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }
    package var keybagIdentity: KeybagIdentity { document.identity }

    package func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = document.newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet)
        }
        return generation
    }

    package func availability(
        of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading
    ) -> KeyAvailability {
        keys[ClassKeyID(accessibility, generation: generation)] == nil ? .missing : .available
    }

    package func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try body(key(ClassKeyID(accessibility, generation: generation)).classKey)
    }

    package func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider { self }
}

/// A class key with several owners.
///
/// The key itself is noncopyable and cannot be an element of an array.
final class SharedClassKey: Sendable {
    let classKey: ClassKey

    var id: ClassKeyID { ClassKeyID(classKey.accessibility, generation: classKey.generation) }

    init(_ classKey: consuming ClassKey) {
        self.classKey = classKey
    }

    /// A random key.
    convenience init(random id: ClassKeyID) throws(KeychainFailure) {
        let secret = try SecretBytes(randomByteCount: ClassKey.byteCount)
        self.init(ClassKey(accessibility: id.accessibility, generation: id.generation, secret: secret))
    }

    /// Unwraps the key of an entry; nil if it was wrapped under another key.
    ///
    /// Throws `.notAvailable` if the check value of the entry is that of another key.
    convenience init?(
        unwrapping entry: KeybagDocument.ClassKeyEntry, under wrappingKey: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) {
        guard let key = KeyWrapping.unwrap(entry.wrappedKey, under: wrappingKey) else { return nil }
        let secret = try SecretBytes(copying: key)
        guard try ClassKeyCheck.value(of: secret, entry.id, storeID: storeID) == entry.checkValue else {
            throw KeybagDocument.malformed()
        }
        self.init(ClassKey(accessibility: entry.id.accessibility, generation: entry.id.generation, secret: secret))
    }

    /// The entry of this key in a keybag.
    func entry(
        _ wrapping: KeybagDocument.Wrapping, under wrappingKey: borrowing SecretBytes, storeID: StoreID
    ) throws(KeychainFailure) -> KeybagDocument.ClassKeyEntry {
        KeybagDocument.ClassKeyEntry(
            id: id, wrapping: wrapping, wrappedKey: try KeyWrapping.wrap(SymmetricKey(classKey.secret), under: wrappingKey),
            checkValue: try ClassKeyCheck.value(of: classKey.secret, id, storeID: storeID)
        )
    }
}

/// A value that verifies a class key of a store without revealing the key.
enum ClassKeyCheck {
    static let byteCount = 16

    static func value(of secret: borrowing SecretBytes, _ id: ClassKeyID, storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        var context = [id.accessibility.code]
        context.append(littleEndian: id.generation)
        return try KeyPurpose.classKeyCheck.deriveBytes(from: secret, storeID: storeID, context: context, byteCount: byteCount)
    }
}
