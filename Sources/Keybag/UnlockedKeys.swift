// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// All class keys of one keybag in hand, whatever the holder holds: for unlocking, rewrapping, restoring, removing a passcode.
///
/// Keep one no longer than that takes.
package final class UnlockedKeys: Sendable {
    let document: KeybagDocument
    private let keys: [ClassKeyID: SharedClassKey]
    /// Nil where the keybag has none: without a passcode, or from before there was one.
    let presence: PresenceKeyPair?
    /// What the TPM kept; nil without one.
    let passcodeSecret: PasscodeSecret?

    init(
        document: KeybagDocument, keys: [ClassKeyID: SharedClassKey], presence: PresenceKeyPair?, passcodeSecret: PasscodeSecret?
    ) {
        self.document = document
        self.keys = keys
        self.presence = presence
        self.passcodeSecret = passcodeSecret
    }

    /// The same without the keys of other classes, and without the presence key pair.
    private func limited(to classes: Set<Accessibility>) -> UnlockedKeys {
        UnlockedKeys(
            document: document, keys: keys.filter { classes.contains($0.key.accessibility) }, presence: nil, passcodeSecret: nil)
    }

    /// Whether `presenceRelease` has anything to give.
    package var hasPresenceKeyPair: Bool { presence != nil }

    /// What the passcode releases for items of these classes that need the person.
    ///
    /// Throws `.authFailed` when the keybag has no presence key pair.
    package func presenceRelease(for classes: Set<Accessibility>) throws(KeychainFailure) -> PresenceRelease {
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

    /// What the holder is to hold in a slot.
    ///
    /// Throws `.internal` when no passcode is set: then nothing is held. Class keys have their own slots.
    package func payload(for slot: KeyHolderSlot) throws(KeychainFailure) -> SecretBytes {
        guard document.content.passcode != nil, !slot.survivesLocks else {
            throw KeychainFailure(.internal, "without a passcode no key is given to a holder")
        }
        let payload = HolderPayload(of: document, slot: slot)
        return try payload.filled(with: payload.ids.compactMap { keys[$0] })
    }

    func key(_ id: ClassKeyID) throws(KeychainFailure) -> SharedClassKey {
        guard let key = keys[id] else { throw KeybagDocument.noSuchKey(id) }
        return key
    }
}

extension UnlockedKeys: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }
    package var keybagIdentity: KeybagIdentity { document.identity }

    package func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = document.newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set", refusal: .passcodeNotSet)
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

    package func scopedToCall() -> any KeyProvider { self }
}

/// A class key that several owners share: what cannot be copied stands in no array.
final class SharedClassKey: Sendable {
    let classKey: ClassKey

    var id: ClassKeyID { ClassKeyID(classKey.accessibility, generation: classKey.generation) }

    init(_ classKey: consuming ClassKey) {
        self.classKey = classKey
    }

    /// A fresh key.
    convenience init(random id: ClassKeyID) throws(KeychainFailure) {
        let secret = try SecretBytes(randomByteCount: ClassKey.byteCount)
        self.init(ClassKey(accessibility: id.accessibility, generation: id.generation, secret: secret))
    }

    /// The key of an entry; nil when it was wrapped under another key.
    ///
    /// Throws `.notAvailable` when the entry says it is another class key than it is.
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

/// Tells whether bytes are a certain class key of a certain store, without any other key and without telling the key.
enum ClassKeyCheck {
    static let byteCount = 16

    static func value(of secret: borrowing SecretBytes, _ id: ClassKeyID, storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        var context = [id.accessibility.code]
        context.append(littleEndian: id.generation)
        return try KeyPurpose.classKeyCheck.deriveBytes(from: secret, storeID: storeID, context: context, byteCount: byteCount)
    }
}
