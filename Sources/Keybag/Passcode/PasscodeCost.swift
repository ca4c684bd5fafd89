// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

/// What deriving a key from a passcode costs: the parameters of scrypt (RFC 7914).
///
/// Bounded on both sides: too little protects nobody, too much would stop whoever opens a store that another program wrote.
package struct PasscodeCost: Hashable, Sendable {
    /// N is two to this power: how often the memory is filled and read.
    package let roundsExponent: UInt8
    /// r, in units of 128 bytes.
    package let blockSize: UInt32
    /// p: how often the whole is done, one after the other.
    package let parallelism: UInt32

    /// 64 MiB, about a quarter of a second.
    package static let standard = PasscodeCost(uncheckedRoundsExponent: 16, blockSize: 8, parallelism: 1)

    /// Memory for one derivation: 128 · N · r.
    package var memoryByteCount: Int { Int(blockSize) << (Int(roundsExponent) + 7) }

    /// Nil outside these bounds: N from 2^10, and below 2^(16 · r) as scrypt demands; r from 1 to 16; p from 1 to 16; at most
    /// 1 GiB of memory, filled at most four times over.
    package init?(roundsExponent: UInt8, blockSize: UInt32, parallelism: UInt32) {
        // With larger blocks and p = 1, swift-crypto allows scrypt less memory than it takes.
        guard (10...30).contains(roundsExponent), (1...16).contains(blockSize), (1...16).contains(parallelism),
            UInt32(roundsExponent) < 16 * blockSize
        else { return nil }
        let cost = PasscodeCost(uncheckedRoundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism)
        guard cost.memoryByteCount <= Self.largestMemoryByteCount,
            cost.memoryByteCount * Int(parallelism) <= 4 * Self.largestMemoryByteCount
        else { return nil }
        self = cost
    }

    private init(uncheckedRoundsExponent: UInt8, blockSize: UInt32, parallelism: UInt32) {
        roundsExponent = uncheckedRoundsExponent
        self.blockSize = blockSize
        self.parallelism = parallelism
    }

    /// The logarithm of N to base 2 (1), r (4), p (4).
    var encoded: [UInt8] {
        var bytes = [roundsExponent]
        bytes.append(littleEndian: blockSize)
        bytes.append(littleEndian: parallelism)
        return bytes
    }

    /// Parses `encoded`; nil for anything else, and for what `init(roundsExponent:blockSize:parallelism:)` refuses.
    init?(encoded: some Collection<UInt8>) {
        var reader = ByteReader(encoded)
        guard let roundsExponent = reader.readByte(), let blockSize = reader.readUInt32(), let parallelism = reader.readUInt32(),
            reader.isAtEnd
        else { return nil }
        self.init(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism)
    }

    private static let largestMemoryByteCount = 1 << 30
}
