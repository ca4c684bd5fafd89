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

    /// Returns the protector that a keybag names.
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

    /// Returns a new device secret and the record of its protector for the keybag.
    func newSecret(_ kind: DeviceProtectorKind, for storeID: StoreID) throws(KeychainFailure) -> NewDeviceSecret {
        switch kind {
        case .keyFile:
            return NewDeviceSecret(try SecretBytes(randomByteCount: DeviceSecret.byteCount), record: .init(kind: .keyFile), device: nil)
        case .systemdCredential:
            // The service manager provides it; it is never written.
            return NewDeviceSecret(try credential.deviceSecret(for: storeID), record: .init(kind: .systemdCredential), device: nil)
        case .tpm2:
            let device = try configuration.tpm()
            let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
            let sealed = try TPMProtector.seal(secret, on: device)
            return NewDeviceSecret(secret, record: .init(sealedDeviceSecret: sealed), device: device)
        }
    }
}

/// A device secret for a keybag that is yet to be stored.
struct NewDeviceSecret: Sendable {
    let shared: SharedSecretBytes
    let record: KeybagDocument.ProtectorRecord
    /// The TPM that sealed the secret; nil for other protectors.
    let device: (any SealingDevice)?

    init(_ secret: consuming SecretBytes, record: KeybagDocument.ProtectorRecord, device: (any SealingDevice)?) {
        shared = SharedSecretBytes(secret)
        self.record = record
        self.device = device
    }
}

extension KeychainConfiguration {
    /// Returns the protector of a keychain that is created now.
    ///
    /// Throws `.notAvailable` if it is unknown whether there is a systemd credential.
    func newStoreProtector() throws(KeychainFailure) -> DeviceProtectorKind {
        if let kind = protectorForNewStore { return kind }
        return try SystemdCredential(credentialsDirectory: credentialsDirectory).isPresent() ? .systemdCredential : .keyFile
    }

    /// Returns the TPM that this configuration names.
    ///
    /// No other TPM is tried.
    ///
    /// Throws `.notAvailable` if the name is invalid, or if this build has no TPM support.
    func tpm() throws(KeychainFailure) -> any SealingDevice {
        if let sealingDevice { return sealingDevice }
        guard TPMDevice.isBuilt else {
            throw KeychainFailure(
                SealingFailure.unavailable("this program was built without support for it, which the package trait TPM adds"))
        }
        // tpm2-tss reads these itself: TSS2_LOGFILE names a file to append to, and TSS2_LOG can make it log secrets.
        guard !ProcessEnvironment.isPrivileged || !ProcessEnvironment.callerHasSetVariable(withPrefix: "TSS2_") else {
            throw KeychainFailure(
                SealingFailure.unavailable(
                    "this program has privileges that its caller lacks, and the environment contains a variable TSS2_…: remove it"))
        }
        do throws(SealingFailure) {
            return try TPMDevice(tcti: tpmTCTI)
        } catch {
            throw KeychainFailure(error)
        }
    }
}

/// A device secret that systemd passes to a service: decrypted by the service manager, in memory only, and removed with the service.
///
/// Source: systemd.exec(5), "Credentials"; systemd-creds(1). The credential holds exactly 32 bytes. To create one:
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
    /// Throws `.notAvailable` if that is unknown: a new keychain would otherwise get a weaker protector than intended.
    package func isPresent() throws(KeychainFailure) -> Bool {
        guard let path = try absolutePath() else { return false }
        do throws(KeychainFailure) {
            return try PrivateFile.isPresent(path, subject: "the systemd credential")
        } catch {
            throw error.located(at: path, subject: .credential)
        }
    }

    /// Throws `.notAvailable` for a relative path: what it names depends on the directory of the process.
    private func absolutePath() throws(KeychainFailure) -> String? {
        guard let path, !path.hasPrefix("/") else { return path }
        throw KeychainFailure(
            .notAvailable, "CREDENTIALS_DIRECTORY must be an absolute path", subject: .credential,
            cause: .environmentVariable("CREDENTIALS_DIRECTORY"))
    }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard let path = try absolutePath() else {
            throw KeychainFailure(
                .notAvailable,
                """
                the systemd credential '\(Self.credentialName)' is required: run this program in a service that has it, or set \
                CREDENTIALS_DIRECTORY to the directory that contains it
                """,
                subject: .credential, cause: .missing)
        }
        do throws(KeychainFailure) {
            let secret = try PrivateFile.read(
                path, byteLimit: DeviceSecret.byteCount + 1, subject: "the systemd credential", requiresPrivateMode: false)
            guard secret.byteCount == DeviceSecret.byteCount else {
                throw KeychainFailure(
                    .notAvailable, "the systemd credential at \(path) must hold exactly \(DeviceSecret.byteCount) bytes", cause: .malformed)
            }
            guard !(unsafe secret.withBytes { unsafe $0.allSatisfy { $0 == 0 } }) else {
                throw KeychainFailure(
                    .notAvailable, "the systemd credential at \(path) contains only zeros, so its content was lost", cause: .malformed)
            }
            return secret
        } catch {
            guard error.cause != .missing else {
                // It may be missing for a keychain that does not exist yet, which has no recovery key.
                throw KeychainFailure(
                    .notAvailable,
                    "the systemd credential \(path) does not exist: check its name and directory, or use the recovery key if one was made",
                    path: path, subject: .credential, cause: .missing)
            }
            throw error.located(at: path, subject: .credential)
        }
    }
}

/// A device secret from a recovery key, used while the keychain moves to another protector.
struct RecoveredDeviceSecret: DeviceProtector {
    /// The kind of the lost protector.
    let kind: DeviceProtectorKind
    let secret: SharedSecretBytes

    func location(for storeID: StoreID) -> String { "the recovery key" }

    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes { try secret.copy() }
}
