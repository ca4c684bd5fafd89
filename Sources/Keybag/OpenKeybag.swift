// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// A keybag whose device-bound keys are at hand: lends class keys, and makes the cipher for rows.
///
/// The device secret is used while this is made and not kept.
package final class OpenKeybag: Sendable {
    package let document: KeybagDocument
    /// How many of the stored copies did not serve: absent, altered, or another keybag than the one in use.
    package let damagedCopyCount: Int
    package let cipher: RowCipher
    private let classKeys: [HeldClassKey]

    package var storeID: StoreID { document.storeID }

    /// An array cannot hold what cannot be copied, so each key has a box.
    private final class HeldClassKey: Sendable {
        let classKey: ClassKey

        init(_ classKey: consuming ClassKey) {
            self.classKey = classKey
        }
    }

    /// Opens a store's keybag with the newest copy that is authentic.
    ///
    /// Throws `.notAvailable` when none is, or when the keybag was written by a newer version.
    package init(copies: [[UInt8]], storeID: StoreID, deviceSecret: borrowing SecretBytes) throws(KeychainFailure) {
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        var newest: KeybagDocument?
        // A disk that lost a write may have left one copy as it was before the last change.
        for copy in copies where KeybagDocument.isAuthentic(copy, by: authenticationKey) {
            let document = try KeybagDocument(authentic: copy, storeID: storeID)
            if document.generation > newest?.generation ?? 0 { newest = document }
        }
        guard let document = newest else {
            throw KeychainFailure(
                .notAvailable, "the keybag is damaged, or the device secret is that of another store; nothing was changed",
                isDamage: true
            )
        }
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)

        self.document = document
        damagedCopyCount = max(0, KeybagDocument.copyCount - copies.count { $0 == document.encoded })
        cipher = try RowCipher(
            storeID: storeID, indexKey: Self.unwrap(document.wrappedIndexKey, under: deviceKey),
            rowTagKey: Self.unwrap(document.wrappedRowTagKey, under: deviceKey)
        )
        var classKeys: [HeldClassKey] = []
        for entry in document.classKeys {
            let secret = try Self.unwrap(entry.wrappedKey, under: deviceKey)
            guard Self.checkValue(of: secret, entry.accessibility, entry.generation, storeID: storeID) == entry.checkValue else {
                throw KeybagDocument.malformed()
            }
            classKeys.append(
                HeldClassKey(ClassKey(accessibility: entry.accessibility, generation: entry.generation, secret: secret))
            )
        }
        self.classKeys = classKeys
        for accessibility in Self.deviceBoundClasses where newestGeneration(of: accessibility) == nil {
            throw KeybagDocument.malformed()
        }
    }

    /// The keybag of a new store, with fresh keys.
    ///
    /// Throws `.notAvailable` when the kernel gives no random bytes.
    package static func make(
        storeID: StoreID, deviceSecret: borrowing SecretBytes, protector: KeybagDocument.ProtectorRecord
    ) throws(KeychainFailure) -> KeybagDocument {
        let deviceKey = try KeyPurpose.deviceKey.derive(from: deviceSecret, storeID: storeID)
        var entries: [KeybagDocument.ClassKeyEntry] = []
        for accessibility in deviceBoundClasses {
            let generation: UInt32 = 1
            let secret = try SecretBytes(randomByteCount: ClassKey.byteCount)
            entries.append(
                KeybagDocument.ClassKeyEntry(
                    accessibility: accessibility, generation: generation,
                    wrappedKey: try KeyWrapping.wrap(SymmetricKey(secret), under: deviceKey),
                    checkValue: checkValue(of: secret, accessibility, generation, storeID: storeID)
                )
            )
        }
        let content = KeybagDocument.Content(
            generation: 1, protector: protector, wrappedIndexKey: try wrapFreshKey(under: deviceKey),
            wrappedRowTagKey: try wrapFreshKey(under: deviceKey), classKeys: entries
        )
        let authenticationKey = try HMACKey(KeyPurpose.keybagAuthentication.derive(from: deviceSecret, storeID: storeID))
        return KeybagDocument(storeID: storeID, content: content, authenticatedBy: authenticationKey)
    }

    /// The classes whose keys the device key wraps, in the order of their codes: all, but for the one that a passcode makes.
    private static let deviceBoundClasses =
        Accessibility.allCases
        .filter { $0 != .whenPasscodeSetThisDeviceOnly }
        .sorted { $0.code < $1.code }

    private static func wrapFreshKey(under deviceKey: borrowing SecretBytes) throws(KeychainFailure) -> [UInt8] {
        let key = try SecretBytes(randomByteCount: KeyWrapping.keyByteCount)
        return try KeyWrapping.wrap(SymmetricKey(key), under: deviceKey)
    }

    private static func unwrap(_ wrapped: [UInt8], under deviceKey: borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes {
        guard let key = KeyWrapping.unwrap(wrapped, under: deviceKey) else { throw KeybagDocument.malformed() }
        return try SecretBytes(copying: key)
    }

    private static func checkValue(
        of secret: borrowing SecretBytes, _ accessibility: Accessibility, _ generation: UInt32, storeID: StoreID
    ) -> [UInt8] {
        var context = [accessibility.code]
        context.append(littleEndian: generation)
        return KeyPurpose.classKeyCheck.deriveBytes(
            from: secret, storeID: storeID, context: context, byteCount: KeybagDocument.checkValueByteCount
        )
    }

    private func newestGeneration(of accessibility: Accessibility) -> UInt32? {
        classKeys.last { $0.classKey.accessibility == accessibility }?.classKey.generation
    }

    private func held(_ accessibility: Accessibility, _ generation: UInt32) -> HeldClassKey? {
        classKeys.first { $0.classKey.accessibility == accessibility && $0.classKey.generation == generation }
    }
}

extension OpenKeybag: KeyProvider {
    package var keybagGeneration: UInt64 { document.generation }

    package func currentGeneration(for accessibility: Accessibility) throws(KeychainFailure) -> UInt32 {
        guard let generation = newestGeneration(of: accessibility) else {
            throw KeychainFailure(.authFailed, "no passcode is set")
        }
        return generation
    }

    package func forOneCall() -> any KeyProvider { self }

    package func availability(of accessibility: Accessibility, generation: UInt32) -> KeyAvailability {
        held(accessibility, generation) == nil ? .missing : .available
    }

    package func withClassKey<Result>(
        for accessibility: Accessibility, generation: UInt32,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let held = held(accessibility, generation) else {
            throw KeychainFailure(.decode, "the keybag has no class key \(accessibility.rawValue) of generation \(generation)")
        }
        return try body(held.classKey)
    }
}
