// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A device secret that a recovery key gave, for as long as the keychain is moved to another protector.
struct RecoveredSecret: DeviceProtector {
    /// Of the protector that is lost.
    let kind: DeviceProtectorKind
    let secret: SharedSecretBytes

    func location(for storeID: StoreID) -> String { "the recovery key" }

    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes { try secret.copy() }
}
