// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A store's keybag in its stored form: every key wrapped, the whole authenticated.
///
/// Immutable: a change creates a new document of the next generation. Every instance was authenticated.
package struct KeybagDocument: Sendable {
    /// How many copies a store keeps.
    package static let copyCount = 2

    package let storeID: StoreID
    let content: Content
    /// The canonical bytes, to be stored `copyCount` times.
    package let encoded: [UInt8]

    /// Increases with each change.
    package var generation: UInt64 { content.generation }
    /// The generation and the first bytes of the authentication code.
    package var identity: KeybagIdentity {
        let tag = encoded.suffix(Self.codeByteCount).prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return KeybagIdentity(generation: generation, tag: tag)
    }
    package var protector: ProtectorRecord { content.protector }
    var classKeys: [ClassKeyEntry] { content.classKeys }

    /// The protector of the store's device secret, with its parameters.
    package struct ProtectorRecord: Hashable, Sendable {
        package let kind: DeviceProtectorKind
        /// The protector's data, opaque here and not secret.
        package let parameters: [UInt8]

        package init(kind: DeviceProtectorKind, parameters: [UInt8] = []) {
            self.kind = kind
            self.parameters = parameters
        }

        /// A TPM, whose parameters are the device secret sealed by it without an authorization.
        package init(sealedDeviceSecret: SealedObject) {
            self.init(kind: .tpm2, parameters: sealedDeviceSecret.encoded)
        }

        /// The sealed device secret of a TPM.
        ///
        /// It is read before the keybag is authenticated, because the device secret authenticates it. So this checks the frame exactly,
        /// and the caller that passes the object to the TPM checks the rest. Throws `.notAvailable` for anything else.
        package func sealedDeviceSecret() throws(KeychainFailure) -> SealedObject {
            guard kind == .tpm2 else { throw KeychainFailure(.internal, "this protector seals nothing") }
            return try KeybagDocument.sealedObject(from: parameters)
        }
    }

    /// The key that wraps a class key.
    ///
    /// The raw values are part of the on-disk format.
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

    /// The content of a keybag before encoding.
    struct Content: Sendable {
        var generation: UInt64
        var protector: ProtectorRecord
        var wrappedIndexKey: [UInt8]
        var wrappedRowTagKey: [UInt8]
        /// In ascending order of class code and generation.
        var classKeys: [ClassKeyEntry]
        /// Nil while no passcode is set.
        var passcode: PasscodeRecord?
        /// Nil while no passcode is set, and in keybags of versions without presence keys.
        var presence: PresenceRecord?
        /// Nil while there is no recovery key.
        var recovery: RecoveryRecord?
        /// The TPM's part of the passcode key; present exactly with the protector tpm2 and a passcode.
        var sealedPasscodeSecret: SealedObject?
    }

    package var isPasscodeSet: Bool { content.passcode != nil }

    /// Whether both have the same passcode, or none.
    package func hasSamePasscode(as other: KeybagDocument) -> Bool { content.passcode == other.content.passcode }

    /// Whether both have the same recovery key, or none.
    package func hasSameRecoveryKey(as other: KeybagDocument) -> Bool {
        content.recovery?.publicKey == other.content.recovery?.publicKey
    }

    /// The newest generation of a class, which new writes use.
    func newestGeneration(of accessibility: ItemAccessibility) -> UInt32? {
        classKeys.last { $0.id.accessibility == accessibility }?.id.generation
    }
}
