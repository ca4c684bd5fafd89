// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainSystem
internal import KeychainTPM

/// The protectors of one configuration.
struct ProtectorSelection {
    let configuration: KeychainConfiguration

    var keyFile: KeyFile {
        KeyFile(directory: configuration.keyDirectory, storePath: configuration.storePath)
    }

    var credential: SystemdCredential {
        SystemdCredential(credentialsDirectory: configuration.credentialsDirectory)
    }

    /// The one that a keybag names.
    func protector(
        of record: KeybagDocument.ProtectorRecord, holder: any KeyHolder
    ) throws(KeychainFailure) -> any DeviceProtector {
        switch record.kind {
        case .keyFile: keyFile
        case .systemdCredential: credential
        case .tpm2:
            TPMProtector(device: try configuration.tpm(), sealedSecret: try record.sealedDeviceSecret(), holder: holder)
        }
    }

    /// A new device secret, and what the keybag is to say of it.
    func newSecret(_ kind: DeviceProtectorKind, for storeID: StoreID) throws(KeychainFailure) -> NewDeviceSecret {
        switch kind {
        case .keyFile:
            return NewDeviceSecret(try SecretBytes(randomByteCount: DeviceSecret.byteCount), record: .init(kind: .keyFile), device: nil)
        case .systemdCredential:
            // The service's own: read, and never written.
            return NewDeviceSecret(try credential.deviceSecret(for: storeID), record: .init(kind: .systemdCredential), device: nil)
        case .tpm2:
            let device = try configuration.tpm()
            let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
            let sealed = try TPMProtector.seal(secret, on: device)
            return NewDeviceSecret(secret, record: .init(sealedDeviceSecret: sealed), device: device)
        }
    }
}

/// A device secret for a keybag that has yet to be stored.
struct NewDeviceSecret: Sendable {
    let shared: SharedSecretBytes
    let record: KeybagDocument.ProtectorRecord
    /// The chip that sealed it, if one did.
    let device: (any SealingDevice)?

    init(_ secret: consuming SecretBytes, record: KeybagDocument.ProtectorRecord, device: (any SealingDevice)?) {
        shared = SharedSecretBytes(secret)
        self.record = record
        self.device = device
    }
}

extension KeychainConfiguration {
    /// The chip that this configuration names; no other is looked for.
    ///
    /// Throws `.notAvailable` where the name is none, or this build cannot talk to a TPM.
    func tpm() throws(KeychainFailure) -> any SealingDevice {
        if let sealingDevice { return sealingDevice }
        guard TPMDevice.isBuilt else {
            throw KeychainFailure(
                SealingFailure.unavailable("this program was built without support for it, which the package trait TPM adds"))
        }
        do throws(SealingFailure) {
            return try TPMDevice(tcti: tpmTCTI)
        } catch {
            throw KeychainFailure(error)
        }
    }
}

/// A device secret that systemd hands to a service: decrypted by the service manager, in memory only, gone with the service.
///
/// Source: systemd.exec(5), "Credentials"; systemd-creds(1). The credential holds exactly 32 bytes, for instance made by
/// `head -c 32 /dev/urandom | systemd-creds encrypt --name=keychain-device-secret - FILE`.
package struct SystemdCredential: DeviceProtector {
    package static let credentialName = "keychain-device-secret"

    private let path: String?

    package init(credentialsDirectory: String?) {
        path = credentialsDirectory.map { $0 + "/" + Self.credentialName }
    }

    package var kind: DeviceProtectorKind { .systemdCredential }

    package func location(for storeID: StoreID) -> String { path ?? "a systemd credential that this process was not given" }

    /// Whether the service has the credential.
    ///
    /// Throws `.notAvailable` when that cannot be said: a new keychain would otherwise get a weaker protector than was meant.
    package func isPresent() throws(KeychainFailure) -> Bool {
        guard let path else { return false }
        return try PrivateFile.isPresent(path, subject: "the systemd credential")
    }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard let path else {
            throw KeychainFailure(
                .notAvailable,
                "this keychain needs the systemd credential '\(Self.credentialName)', and this process was given no credentials"
            )
        }
        let secret = try PrivateFile.read(
            path, byteLimit: DeviceSecret.byteCount + 1, subject: "the systemd credential", requiresPrivateMode: false)
        guard secret.byteCount == DeviceSecret.byteCount else {
            throw KeychainFailure(.notAvailable, "the systemd credential at \(path) must hold exactly \(DeviceSecret.byteCount) bytes")
        }
        return secret
    }
}

/// A device secret that a recovery key gave, for as long as the keychain is moved to another protector.
struct RecoveredDeviceSecret: DeviceProtector {
    /// Of the protector that is lost.
    let kind: DeviceProtectorKind
    let secret: SharedSecretBytes

    func location(for storeID: StoreID) -> String { "the recovery key" }

    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes { try secret.copy() }
}
