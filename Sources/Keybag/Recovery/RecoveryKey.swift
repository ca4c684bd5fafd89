// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// A recovery key: 160 random bits that a person keeps on paper in case the protector is lost.
///
/// A key pair is derived from them. The keybag has the public key, so that a new device secret can be sealed without the recovery key.
package final class RecoveryKey: Sendable {
    static let byteCount = 20

    let bits: SecretBytes

    init(bits: consuming SecretBytes) {
        self.bits = bits
    }

    /// A random recovery key.
    package convenience init() throws(KeychainFailure) {
        self.init(bits: try SecretBytes(randomByteCount: Self.byteCount))
    }

    /// The private key for one store.
    func privateKey(storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        try KeyPurpose.recoveryKey.derive(from: bits, storeID: storeID)
    }

    func publicKey(storeID: StoreID) throws(KeychainFailure) -> [UInt8] {
        try SealedBox.publicKey(of: privateKey(storeID: storeID))
    }

    /// The key that authenticates the recovery record of one store.
    func authenticationKey(storeID: StoreID) throws(KeychainFailure) -> HMACKey {
        try HMACKey(KeyPurpose.recoveryAuthentication.derive(from: bits, storeID: storeID))
    }

    /// A checksum that detects typing errors: 20 bits of a hash.
    func checksum() -> UInt32 {
        var hash = SHA256()
        hash.update(data: Array("keychain recovery key check v1".utf8))
        // The hash reads the bytes within the closure.
        unsafe bits.withBytes { unsafe hash.update(bufferPointer: $0) }
        let digest = hash.finalizeWiping()
        return digest.prefix(3).reduce(0) { $0 << 8 | UInt32($1) } >> 4
    }
}

/// The text form of a recovery key: nine groups of four characters, the last group being the checksum.
///
/// The characters are those of Crockford's Base32, five bits each, most significant bit first. It has no look-alike characters.
extension RecoveryKey {
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let keyLetterCount = 32
    private static let letterCount = 36
    private static let groupLength = 4
    /// The characters and the dashes between groups.
    package static let textByteCount = letterCount + letterCount / groupLength - 1

    /// Returns the text, in secret memory.
    package func text() throws(KeychainFailure) -> SecretBytes {
        defer { SecretArena.wipeStack() }
        let checksum = self.checksum()
        return try unsafe SecretBytes(byteCount: Self.textByteCount) { buffer in
            // Every position is below the number of letters and dashes, which is the size of the buffer.
            var position = 0
            for letter in 0..<Self.letterCount {
                if letter > 0, letter.isMultiple(of: Self.groupLength) {
                    unsafe buffer[position] = UInt8(ascii: "-")
                    position += 1
                }
                let shift = UInt32(5 * (Self.letterCount - 1 - letter))
                let value = letter < Self.keyLetterCount ? fiveBits(letter) : Int(checksum >> shift) & 31
                unsafe buffer[position] = Self.alphabet[value]
                position += 1
            }
        }
    }

    private func fiveBits(_ index: Int) -> Int {
        let bit = index * 5
        // Two bytes hold any five bits; the second is missing only where the first has them all.
        return unsafe bits.withBytes { bytes in
            let high = unsafe Int(bytes[bit / 8]) << 8
            let low = unsafe bit / 8 + 1 < bytes.count ? Int(bytes[bit / 8 + 1]) : 0
            return (high | low) >> (11 - bit % 8) & 31
        }
    }

    /// Parses a typed recovery key.
    ///
    /// Case, blanks, and dashes do not matter; O counts as 0, and I and L count as 1.
    ///
    /// Throws `.parameter` for other text, with the cause `.mistypedRecoveryKey` if the checksum is wrong.
    package convenience init(typed text: UnsafeRawBufferPointer) throws(KeychainFailure) {
        defer { SecretArena.wipeStack() }
        var count = 0
        var givenChecksum: UInt32 = 0
        // Each character sets its bits within the region; surplus characters are only counted.
        let bits = try unsafe SecretBytes(byteCount: Self.byteCount) { buffer throws(KeychainFailure) in
            for index in text.indices {
                let byte = unsafe text[index]
                guard byte != UInt8(ascii: " "), byte != UInt8(ascii: "\t"), byte != UInt8(ascii: "-") else { continue }
                guard let value = Self.value(of: byte) else {
                    throw KeychainFailure(.parameter, "a recovery key has letters and digits only, and no U")
                }
                if count < Self.keyLetterCount {
                    for bit in 0..<5 where value & (16 >> bit) != 0 {
                        let place = count * 5 + bit
                        unsafe buffer[place / 8] |= 128 >> UInt8(place % 8)
                    }
                } else {
                    givenChecksum = givenChecksum << 5 | UInt32(value)
                }
                count += 1
                guard count <= Self.letterCount else { break }
            }
            guard count == Self.letterCount else {
                let number = count > Self.letterCount ? "more" : "\(count)"
                throw KeychainFailure(.parameter, "a recovery key has \(Self.letterCount) letters and digits, and this has \(number)")
            }
        }
        self.init(bits: bits)
        guard self.checksum() == givenChecksum else {
            throw KeychainFailure(
                .parameter, "the recovery key is mistyped: its last group does not match the rest", cause: .mistypedRecoveryKey)
        }
    }

    private static func value(of byte: UInt8) -> Int? {
        let isSmall = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        switch isSmall ? byte - 32 : byte {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        case let letter: return alphabet.firstIndex(of: letter)
        }
    }
}
