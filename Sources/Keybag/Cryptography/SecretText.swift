// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// The text form of a secret that a person writes down or reads to another: groups of four characters, of which the last ones are a checksum.
///
/// The characters are those of Crockford's Base32, five bits each, most significant bit first. It has no look-alike characters.
struct SecretText: Sendable {
    /// What messages call the secret.
    private let name: String
    private let byteCount: Int
    /// The characters with the bits of the secret; unused bits of the last byte are zero.
    private let secretLetterCount: Int
    private let checkLetterCount: Int
    /// Separates the checksums, so that a secret of another kind is refused as mistyped.
    private let label: String

    static let recoveryKey = SecretText(
        name: "recovery key", byteCount: 20, secretLetterCount: 32, checkLetterCount: 4, label: "keychain recovery key check v1")
    static let recoveryKit = SecretText(
        name: "recovery kit", byteCount: 20, secretLetterCount: 32, checkLetterCount: 4, label: "keychain sync recovery kit check v1")
    static let invitationCode = SecretText(
        name: "code", byteCount: 16, secretLetterCount: 25, checkLetterCount: 3, label: "keychain sync invitation check v1")

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let groupLength = 4

    private var letterCount: Int { secretLetterCount + checkLetterCount }
    /// The characters and the dashes between groups.
    var textByteCount: Int { letterCount + letterCount / Self.groupLength - 1 }

    /// Returns the text of a secret of `byteCount` bytes, in secret memory.
    func text(of secret: borrowing SecretBytes) throws(KeychainFailure) -> SecretBytes {
        guard secret.byteCount == byteCount else { throw KeychainFailure(.internal, "a \(name) has \(byteCount) bytes") }
        defer { SecretArena.wipeStack() }
        let checksum = self.checksum(of: secret)
        // Every position is below the number of letters and dashes, which is the size of the buffer. The bits are read within the closure.
        return try unsafe secret.withBytes { (bits) throws(KeychainFailure) in
            try unsafe SecretBytes(byteCount: textByteCount) { buffer in
                var position = 0
                for letter in 0..<letterCount {
                    if letter > 0, letter.isMultiple(of: Self.groupLength) {
                        unsafe buffer[position] = UInt8(ascii: "-")
                        position += 1
                    }
                    let shift = UInt32(5 * (letterCount - 1 - letter))
                    let value = unsafe letter < secretLetterCount ? Self.fiveBits(letter, of: bits) : Int(checksum >> shift) & 31
                    unsafe buffer[position] = Self.alphabet[value]
                    position += 1
                }
            }
        }
    }

    private static func fiveBits(_ index: Int, of bytes: UnsafeRawBufferPointer) -> Int {
        let bit = index * 5
        // Two bytes hold any five bits; the second is missing only where the first has them all.
        let high = unsafe Int(bytes[bit / 8]) << 8
        let low = unsafe bit / 8 + 1 < bytes.count ? Int(bytes[bit / 8 + 1]) : 0
        return (high | low) >> (11 - bit % 8) & 31
    }

    /// Parses a typed text.
    ///
    /// Case, blanks, and dashes do not matter; O counts as 0, and I and L count as 1.
    ///
    /// Throws `.parameter` for other text, with the cause `.mistyped` if the checksum is wrong.
    func secret(typed text: UnsafeRawBufferPointer) throws(KeychainFailure) -> SecretBytes {
        defer { SecretArena.wipeStack() }
        var count = 0
        var givenChecksum: UInt32 = 0
        // Each character sets its bits within the region; surplus characters are only counted.
        let secret = try unsafe SecretBytes(byteCount: byteCount) { buffer throws(KeychainFailure) in
            for index in text.indices {
                let byte = unsafe text[index]
                guard byte != UInt8(ascii: " "), byte != UInt8(ascii: "\t"), byte != UInt8(ascii: "-") else { continue }
                guard let value = Self.value(of: byte) else {
                    throw KeychainFailure(.parameter, "a \(name) has letters and digits only, and no U")
                }
                if count < secretLetterCount {
                    for bit in 0..<5 where value & (16 >> bit) != 0 {
                        let place = count * 5 + bit
                        unsafe buffer[place / 8] |= 128 >> UInt8(place % 8)
                    }
                } else {
                    givenChecksum = givenChecksum << 5 | UInt32(value)
                }
                count += 1
                guard count <= letterCount else { break }
            }
            guard count == letterCount else {
                let number = count > letterCount ? "more" : "\(count)"
                throw KeychainFailure(.parameter, "a \(name) has \(letterCount) letters and digits, and this has \(number)")
            }
        }
        guard checksum(of: secret) == givenChecksum else {
            throw KeychainFailure(.parameter, "the \(name) is mistyped: its last group does not match the rest", cause: .mistyped)
        }
        return secret
    }

    private static func value(of byte: UInt8) -> Int? {
        let isSmall = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
        switch isSmall ? byte - 32 : byte {
        case UInt8(ascii: "O"): return 0
        case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
        case let letter: return alphabet.firstIndex(of: letter)
        }
    }

    /// A checksum that detects typing errors: the first bits of a hash, five for each character.
    private func checksum(of secret: borrowing SecretBytes) -> UInt32 {
        var hash = SHA256()
        hash.update(data: Array(label.utf8))
        // The hash reads the bytes within the closure.
        unsafe secret.withBytes { unsafe hash.update(bufferPointer: $0) }
        let first = hash.finalizeWiping().prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        return first >> UInt32(32 - 5 * checkLetterCount)
    }
}

/// The text of codes and of recovery kits.
extension CircleCryptography {
    package func text(of secret: SharedSecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SecretBytes {
        try form.text.text(of: secret.secret)
    }

    package func secret(typed text: borrowing SecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SharedSecretBytes {
        // The bytes are read within the closure.
        SharedSecretBytes(try unsafe text.withBytes { (bytes) throws(KeychainFailure) in try unsafe form.text.secret(typed: bytes) })
    }
}

extension WrittenSecret {
    fileprivate var text: SecretText {
        switch self {
        case .invitationCode: .invitationCode
        case .recoveryKit: .recoveryKit
        }
    }
}
