// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// What a person keeps on paper against the loss of the protector: 160 random bits.
///
/// They stand for a key pair. The keybag has its public half alone, so that a new device secret can be sealed to it without the
/// key at hand.
package final class RecoveryKey: Sendable {
    static let byteCount = 20

    let bits: SecretBytes

    init(bits: consuming SecretBytes) {
        self.bits = bits
    }

    /// A fresh one.
    package convenience init() throws(KeychainFailure) {
        self.init(bits: try SecretBytes(randomByteCount: Self.byteCount))
    }

    /// The private half of its pair in one store.
    func privateKey(storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        try KeyPurpose.recoveryKey.derive(from: bits, storeID: storeID)
    }

    func publicKey(storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        try SealedBox.publicKey(of: privateKey(storeID: storeID))
    }

    /// Tells a key that was typed wrongly: 20 bits of a hash.
    func check() -> UInt32 {
        var hash = SHA256()
        hash.update(data: Array("keychain recovery key check v1".utf8))
        // The hash reads the bytes within the closure.
        unsafe bits.withBytes { unsafe hash.update(bufferPointer: $0) }
        let digest = hash.finalizeWiping()
        return digest.prefix(3).reduce(0) { $0 << 8 | UInt32($1) } >> 4
    }
}
