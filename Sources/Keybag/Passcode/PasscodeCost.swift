// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The cost of deriving a key from a passcode: the parameters of scrypt (RFC 7914).
///
/// Bounded on both sides: a low cost makes guessing cheap, and with a high one a manipulated file could stall the process that opens it.
package struct PasscodeCost: Hashable, Sendable {
    /// The logarithm of N to base 2: how often the memory is filled and read.
    package let roundsExponent: UInt8
    /// r, in units of 128 bytes.
    package let blockSize: UInt32
    /// p: how many times the whole computation runs, sequentially.
    package let parallelism: UInt32

    /// 64 MiB, about a quarter of a second.
    package static let standard = PasscodeCost(uncheckedRoundsExponent: 16, blockSize: 8, parallelism: 1)

    /// The lowest cost within the bounds, 128 KiB: for keychains in memory, whose passcodes protect nothing.
    package static let lowest = PasscodeCost(uncheckedRoundsExponent: 10, blockSize: 1, parallelism: 1)

    /// The memory of one derivation in bytes: 128 · N · r.
    package var memoryByteCount: Int { Int(blockSize) << (Int(roundsExponent) + 7) }

    /// Whether this cost needs more memory than `other`, or more work: the memory is filled `parallelism` times.
    package func exceeds(_ other: PasscodeCost) -> Bool {
        memoryByteCount > other.memoryByteCount
            || memoryByteCount * Int(parallelism) > other.memoryByteCount * Int(other.parallelism)
    }

    /// Nil outside these bounds: N at least 2^10, and below 2^(16 · r) as scrypt requires; r from 1 to 16; p from 1 to 16; at most
    /// 1 GiB of memory, and p times the memory at most 4 GiB.
    package init?(roundsExponent: UInt8, blockSize: UInt32, parallelism: UInt32) {
        // With larger blocks and p = 1, swift-crypto's memory limit is below what scrypt needs.
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

    /// Parses `encoded`; nil if it is malformed or a parameter is out of bounds.
    package init?(encoded: some Collection<UInt8>) {
        var reader = ByteReader(encoded)
        guard let roundsExponent = reader.readByte(), let blockSize = reader.readUInt32(), let parallelism = reader.readUInt32(),
            reader.isAtEnd
        else { return nil }
        self.init(roundsExponent: roundsExponent, blockSize: blockSize, parallelism: parallelism)
    }

    private static let largestMemoryByteCount = 1 << 30
}

/// The parameters for deriving a keybag's passcode key or a backup's keys.
///
///     derivation (1) = 1, scrypt ‖ salt (32) ‖ log2 N (1) ‖ r (4) ‖ p (4)
struct PasscodeRecord: Hashable, Sendable {
    static let saltByteCount = 32
    static let scryptCode: UInt8 = 1

    let salt: [UInt8]
    let cost: PasscodeCost

    /// A record with a random salt.
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
                .notAvailable, "the cost of the passcode in the keybag is out of bounds: too low or too high",
                subject: .keybag, cause: .costRefused)
        }
        self.salt = Array(salt)
        self.cost = cost
    }

    var encoded: [UInt8] {
        [Self.scryptCode] + salt + cost.encoded
    }
}
