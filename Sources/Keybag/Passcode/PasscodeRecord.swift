// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// How a keybag's passcode key is derived, or a backup's keys.
///
///     derivation (1) = 1, scrypt ‖ salt (32) ‖ log2 N (1) ‖ r (4) ‖ p (4)
struct PasscodeRecord: Hashable, Sendable {
    static let saltByteCount = 32
    static let scryptCode: UInt8 = 1

    let salt: [UInt8]
    let cost: PasscodeCost

    /// With a fresh salt.
    init(cost: PasscodeCost) throws(KeychainFailure) {
        let random = try SecretBytes(randomByteCount: Self.saltByteCount)
        // Not a secret from here on: the bytes are copied within the closure.
        salt = unsafe random.withBytes { unsafe Array($0) }
        self.cost = cost
    }

    init(salt: [UInt8], cost: PasscodeCost) {
        self.salt = salt
        self.cost = cost
    }

    init(encoded: ArraySlice<UInt8>) throws(KeychainFailure) {
        var reader = ByteReader(encoded)
        guard let derivation = reader.readByte() else { throw KeybagDocument.malformed() }
        guard derivation == Self.scryptCode else { throw KeybagDocument.newer() }
        guard let salt = reader.readBytes(Self.saltByteCount), let roundsExponent = reader.readByte(),
            let blockSize = reader.readUInt32(), let parallelism = reader.readUInt32(), reader.isAtEnd
        else { throw KeybagDocument.malformed() }
        guard let cost = PasscodeCost(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism) else {
            throw KeychainFailure(
                .notAvailable, "the keybag names a cost of the passcode that is refused: too low or too high; nothing was changed")
        }
        self.salt = Array(salt)
        self.cost = cost
    }

    var encoded: [UInt8] {
        [Self.scryptCode] + salt + cost.encoded
    }
}
