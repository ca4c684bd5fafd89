// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

@testable internal import Keybag

/// Constant keys, so that an input has the same effect in every run.
enum FixedKeys {
    static let storeID = StoreID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)

    /// Returns a secret of equal bytes.
    static func secret(_ byte: UInt8, byteCount: Int = 32) throws(KeychainFailure) -> SecretBytes {
        // The closure fills the buffer it is given.
        try unsafe SecretBytes(byteCount: byteCount) { buffer in
            for index in buffer.indices { unsafe buffer[index] = byte }
        }
    }

    static func deviceSecret() throws(KeychainFailure) -> SecretBytes { try secret(1) }

    static func passcode() throws(KeychainFailure) -> Passcode {
        try Passcode(normalized: secret(UInt8(ascii: "1"), byteCount: 5))
    }

    static func recoveryKey() throws(KeychainFailure) -> RecoveryKey { RecoveryKey(bits: try secret(2, byteCount: RecoveryKey.byteCount)) }

    static func classKey(_ id: ClassKeyID) throws(KeychainFailure) -> ClassKey {
        ClassKey(accessibility: id.accessibility, generation: id.generation, secret: try secret(id.accessibility.code))
    }

    /// The lowest cost that is allowed: an eighth of a mebibyte.
    static func cost() throws -> PasscodeCost {
        guard let cost = PasscodeCost(roundsExponent: 10, blockSize: 1, parallelism: 1) else { throw Impossible() }
        return cost
    }

    struct Impossible: Error {}

    /// Whether the cost in an input is low enough for a million derivations.
    static func isCheap(_ cost: PasscodeCost) -> Bool { cost.memoryByteCount * Int(cost.parallelism) <= 1 << 18 }

    /// The limit for every cost that is read, on which any reader can rely: 1 GiB, filled at most four times.
    static func expectBounded(_ cost: PasscodeCost) {
        expect(cost.memoryByteCount <= 1 << 30, "a cost of \(cost.memoryByteCount) bytes is accepted")
        expect(cost.memoryByteCount * Int(cost.parallelism) <= 4 << 30, "a cost that takes minutes is accepted")
    }
}
