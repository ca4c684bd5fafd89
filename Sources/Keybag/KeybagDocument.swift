// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A store's keybag as stored: every key wrapped, the whole authenticated.
///
/// Immutable: a change makes a new document of a higher generation. There is none whose authentication was not checked.
package struct KeybagDocument: Sendable {
    /// How many copies a store keeps.
    package static let copyCount = 2

    package let storeID: StoreID
    let content: Content
    /// The canonical bytes, to be stored `copyCount` times.
    package let encoded: [UInt8]

    /// Rises with each change.
    package var generation: UInt64 { content.generation }
    /// The generation, and the beginning of the code over the whole.
    package var identity: KeybagIdentity {
        let tag = encoded.suffix(Self.codeByteCount).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return KeybagIdentity(generation: generation, tag: tag)
    }
    package var protector: ProtectorRecord { content.protector }
    var classKeys: [ClassKeyEntry] { content.classKeys }

    /// Which protector holds the store's device secret, and what that protector needs to find it.
    package struct ProtectorRecord: Hashable, Sendable {
        package let kind: DeviceProtectorKind
        /// The protector's own, opaque here, and not a secret.
        package let parameters: [UInt8]

        package init(kind: DeviceProtectorKind, parameters: [UInt8] = []) {
            self.kind = kind
            self.parameters = parameters
        }

        /// A TPM: its parameters are the device secret as that chip sealed it, without an authorization.
        package init(sealedDeviceSecret: SealedObject) {
            self.init(kind: .tpm2, parameters: sealedDeviceSecret.encoded)
        }

        /// What the chip unseals the device secret from.
        ///
        /// It is read before the keybag is authenticated, since the device secret is what authenticates it: so its frame is
        /// checked exactly here, and its form by whoever hands it to the chip. Throws `.notAvailable` for anything else.
        package func sealedDeviceSecret() throws(KeychainFailure) -> SealedObject {
            guard kind == .tpm2 else { throw KeychainFailure(.internal, "this protector seals nothing") }
            return try KeybagDocument.sealedObject(from: parameters)
        }
    }

    /// What a class key is wrapped under; the raw values stand on disk.
    enum Wrapping: UInt8 {
        case deviceKey = 1
        case passcodeKey = 2
    }

    /// One generation of one class key.
    struct ClassKeyEntry: Sendable {
        let id: ClassKeyID
        let wrapping: Wrapping
        let wrappedKey: [UInt8]
        let checkValue: [UInt8]
    }

    /// What of a keybag is decided before it is encoded.
    struct Content: Sendable {
        var generation: UInt64
        var protector: ProtectorRecord
        var wrappedIndexKey: [UInt8]
        var wrappedRowTagKey: [UInt8]
        /// In ascending order of class code and generation.
        var classKeys: [ClassKeyEntry]
        /// Nil while no passcode is set.
        var passcode: PasscodeRecord?
        /// Nil while no passcode is set, and in a keybag from before there was one.
        var presence: PresenceRecord?
        /// Nil while there is none.
        var recovery: RecoveryRecord?
        /// The TPM's part of the passcode key: there with the protector tpm2 and a passcode, and only then.
        var sealedPasscodeSecret: SealedObject?
    }

    /// The newest generation of a class: the one that new writes use.
    func newestGeneration(of accessibility: Accessibility) -> UInt32? {
        classKeys.last { $0.id.accessibility == accessibility }?.id.generation
    }
}
