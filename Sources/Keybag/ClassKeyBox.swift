// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import KeychainCore

/// A class key that several owners share: what cannot be copied stands in no array.
final class ClassKeyBox: Sendable {
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
