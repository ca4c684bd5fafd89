// SPDX-License-Identifier: Apache-2.0

/// Holds a store's device secret, from which every key begins.
package protocol DeviceProtector: Sendable {
    var kind: DeviceProtectorKind { get }

    /// Where the secret of that store is kept, for people to read. Not a secret.
    func location(for storeID: StoreID) -> String

    /// The secret of that store.
    ///
    /// Throws `.notAvailable`, naming what is missing: without the device secret nothing can be said about any item.
    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes
}

/// The protectors there are.
///
/// The raw value is the number in the keybag.
package enum DeviceProtectorKind: UInt8, Sendable, CaseIterable {
    case keyFile = 1
    case systemdCredential = 2
    /// A TPM 2.0: the keybag holds the secret as only that chip can unseal it.
    case tpm2 = 3

    package var name: String {
        switch self {
        case .keyFile: "keyFile"
        case .systemdCredential: "systemdCredential"
        case .tpm2: "tpm2"
        }
    }
}

/// Length of a device secret.
package enum DeviceSecret {
    package static let byteCount = 32
}
