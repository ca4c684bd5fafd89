// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// A device secret in memory, made for one keychain and gone with it.
package final class InMemoryProtector: DeviceProtector {
    package let storeID = StoreID.random()
    private let secret: SecretBytes

    package init() throws(KeychainFailure) {
        secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
    }

    package var kind: DeviceProtectorKind { .keyFile }

    package func location(for storeID: StoreID) -> String { "memory" }

    package func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        guard storeID == self.storeID else { throw KeychainFailure(.notAvailable, "the device secret in memory is another store's") }
        // The bytes are copied within the closure.
        return try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
#endif
