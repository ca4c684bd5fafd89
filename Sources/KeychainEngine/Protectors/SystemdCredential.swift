// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

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
        return try PrivateFile.isPresent(atPath: path, what: "the systemd credential")
    }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard let path else {
            throw KeychainFailure(
                .notAvailable,
                "this keychain needs the systemd credential '\(Self.credentialName)', and this process was given no credentials"
            )
        }
        let secret = try PrivateFile.secretContents(
            atPath: path, byteLimit: DeviceSecret.byteCount + 1, what: "the systemd credential", checkingPermissions: false)
        guard secret.byteCount == DeviceSecret.byteCount else {
            throw KeychainFailure(.notAvailable, "the systemd credential at \(path) must hold exactly \(DeviceSecret.byteCount) bytes")
        }
        return secret
    }
}
