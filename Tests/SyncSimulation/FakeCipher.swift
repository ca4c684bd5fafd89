// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore

/// The cryptography of a circle in the simulator: keyed hashes that are fast and detect every alteration, but hide nothing.
package final class FakeCipher: CircleCipher, @unchecked Sendable {
    // A simulation has a single thread.
    private var generator: SeededGenerator
    /// The number of different numbers that two people compare while a device joins, so few that an attacker can find two equal ones; nil: all.
    private let numberCount: UInt64?
    private static let numberLabel = Array("keychain sync number v1".utf8)

    package init(seed: UInt64, numberCount: UInt64? = nil) {
        generator = SeededGenerator(seed)
        self.numberCount = numberCount
    }

    package func hash(_ bytes: [UInt8]) -> ObjectHash {
        let hash = Self.hash(bytes)
        guard let numberCount, bytes.starts(with: Self.numberLabel) else { return hash }
        return ObjectHash(prefix: Identifier128(high: hash.prefix.high % numberCount, low: hash.prefix.low), suffix: hash.suffix)
    }

    static func hash(_ parts: [UInt8]...) -> ObjectHash {
        var lanes: (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
        for part in parts {
            absorb(UInt64(part.count), &lanes)
            unsafe part.withUnsafeBytes { buffer in
                var offset = 0
                // Every offset is below the count; loadUnaligned has no alignment rule.
                while offset + 8 <= buffer.count {
                    absorb(unsafe buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self), &lanes)
                    offset += 8
                }
                var rest: UInt64 = 0
                while offset < buffer.count {
                    rest = rest << 8 | UInt64(unsafe buffer[offset])
                    offset += 1
                }
                absorb(rest, &lanes)
            }
        }
        return ObjectHash(
            prefix: Identifier128(high: SeededGenerator.mix(lanes.0), low: SeededGenerator.mix(lanes.1 ^ lanes.0)),
            suffix: Identifier128(high: SeededGenerator.mix(lanes.2 ^ lanes.1), low: SeededGenerator.mix(lanes.3 ^ lanes.2)))
    }

    private static func absorb(_ word: UInt64, _ lanes: inout (UInt64, UInt64, UInt64, UInt64)) {
        lanes.0 = (lanes.0 ^ word) &* 0x9FB2_1C65_1E98_DF25
        lanes.0 ^= lanes.0 >> 29
        lanes.1 = (lanes.1 &+ lanes.0 ^ word) &* 0xD6E8_FEB8_6659_FD93
        lanes.1 ^= lanes.1 >> 32
        lanes.2 = (lanes.2 ^ lanes.1) &* 0xA076_1D64_78BD_642F
        lanes.3 = (lanes.3 &+ lanes.2) ^ lanes.1 << 17
    }

    package func randomBytes(_ byteCount: Int) throws(KeychainFailure) -> [UInt8] {
        (0..<byteCount).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    package func isValid(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
        signature == FakeDeviceKeys.signature(message, publicKey)
    }

    // Lane keys

    package func makeLaneKey() throws(KeychainFailure) -> SharedSecretBytes { try Self.secret(try randomBytes(32)) }

    package func laneKeyID(of key: SharedSecretBytes, circle: CircleID, lane: Lane) throws(KeychainFailure) -> LaneKeyID {
        LaneKeyID(Self.hash([1], circle.bytes, [lane.rawValue], Self.bytes(key)).prefix)
    }

    package func isUsable(boxKey publicKey: [UInt8]) -> Bool { publicKey.contains { $0 != 0 } }

    package func sealBox(
        _ key: SharedSecretBytes, binding: LaneKeyBox.Binding, to publicKey: [UInt8]
    ) throws(KeychainFailure) -> [UInt8] {
        guard isUsable(boxKey: publicKey) else { throw KeychainFailure(.parameter, "nothing can be sealed to the public key of a device") }
        let bytes = Self.bytes(key)
        return bytes + Self.boxTag(bytes, binding, publicKey) + [UInt8](repeating: 0, count: 16)
    }

    static func boxTag(_ key: [UInt8], _ binding: LaneKeyBox.Binding, _ publicKey: [UInt8]) -> [UInt8] {
        hash(key, binding.circle.bytes, [binding.lane.rawValue], binding.key.bytes, binding.device.bytes, publicKey).bytes
    }

    package func wrap(_ key: SharedSecretBytes, under newerKey: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        let bytes = Self.bytes(key)
        return bytes + Self.hash([2], bytes, Self.bytes(newerKey)).bytes.prefix(8)
    }

    package func unwrap(_ bytes: [UInt8], under newerKey: SharedSecretBytes) throws(KeychainFailure) -> SharedSecretBytes {
        let key = Array(bytes.prefix(32))
        guard bytes.count == 40, bytes.suffix(8).elementsEqual(Self.hash([2], key, Self.bytes(newerKey)).bytes.prefix(8)) else {
            throw KeychainFailure(.decode, "not wrapped under this key")
        }
        return try Self.secret(key)
    }

    // Contents

    package func seal(
        _ content: [UInt8], header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> SealedContent {
        let wrapped = Self.hash([3], header, content, try randomBytes(8)).bytes + [UInt8](repeating: 0, count: 8)
        return SealedContent(wrappedKey: wrapped, ciphertext: content + Self.tag(content, header, wrapped, laneKey))
    }

    package func open(
        _ sealed: SealedContent, header: [UInt8], under laneKey: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8] {
        let content = Array(sealed.ciphertext.dropLast(16))
        guard sealed.ciphertext.count >= 16,
            sealed.ciphertext.suffix(16).elementsEqual(Self.tag(content, header, sealed.wrappedKey, laneKey))
        else { throw KeychainFailure(.decode, "not sealed under this key") }
        return content
    }

    private static func tag(_ content: [UInt8], _ header: [UInt8], _ wrapped: [UInt8], _ key: SharedSecretBytes) -> [UInt8] {
        hash([4], bytes(key), header, wrapped, content).prefix.bytes
    }

    /// Returns the content without a key, for the oracle.
    package static func contentWithoutKey(_ sealed: SealedContent) -> [UInt8] { Array(sealed.ciphertext.dropLast(16)) }

    // Joining

    package func makeInvitationCode() throws(KeychainFailure) -> SharedSecretBytes { try Self.secret(try randomBytes(16)) }

    package func invitationID(of code: SharedSecretBytes) throws(KeychainFailure) -> InvitationID {
        InvitationID(Self.hash([5], Self.bytes(code)).prefix)
    }

    package func sealJoinMessage(
        _ content: [UInt8], kind: UInt8, code: SharedSecretBytes
    ) throws(KeychainFailure) -> [UInt8] {
        let nonce = try randomBytes(32)
        return nonce + content + Self.hash([6, kind], nonce, content, Self.bytes(code)).prefix.bytes
    }

    package func openJoinMessage(_ bytes: [UInt8], kind: UInt8, code: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        let nonce = Array(bytes.prefix(32))
        let content = Array(bytes.dropFirst(32).dropLast(16))
        guard bytes.count >= 48, bytes.suffix(16).elementsEqual(Self.hash([6, kind], nonce, content, Self.bytes(code)).prefix.bytes)
        else { throw KeychainFailure(.decode, "not a message of this invitation") }
        return content
    }

    package func text(of secret: SharedSecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SecretBytes {
        try CircleCryptography().text(of: secret, as: form)
    }

    package func secret(typed text: borrowing SecretBytes, as form: WrittenSecret) throws(KeychainFailure) -> SharedSecretBytes {
        try CircleCryptography().secret(typed: text, as: form)
    }

    // Identities

    package func makeDeviceKeys() throws(KeychainFailure) -> any CircleDeviceKeys { FakeDeviceKeys(seed: try randomBytes(16)) }

    package func makeRecoveryKit() throws(KeychainFailure) -> SharedSecretBytes { try Self.secret(try randomBytes(20)) }

    package func deviceKeys(ofRecoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys {
        FakeDeviceKeys(seed: Self.bytes(kit))
    }

    package func circleCode(_ circle: CircleID, recoveryKit kit: SharedSecretBytes) throws(KeychainFailure) -> [UInt8] {
        Self.hash([7], circle.bytes, Self.bytes(kit)).bytes
    }

    package func makeCredentialSecret() throws(KeychainFailure) -> SharedSecretBytes { try Self.secret(try randomBytes(32)) }

    package func deviceKeys(ofCredential secret: SharedSecretBytes) throws(KeychainFailure) -> any CircleDeviceKeys {
        FakeDeviceKeys(seed: [1] + Self.bytes(secret))
    }

    static func secret(_ bytes: [UInt8]) throws(KeychainFailure) -> SharedSecretBytes {
        SharedSecretBytes(
            // The bytes are copied within the closure.
            try unsafe SecretBytes(byteCount: bytes.count) { buffer in unsafe buffer.copyBytes(from: bytes) })
    }

    static func bytes(_ secret: SharedSecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.secret.withBytes { unsafe Array($0) }
    }
}

/// The private keys of a simulated device.
package struct FakeDeviceKeys: CircleDeviceKeys {
    package let publicKeys: DevicePublicKeys

    package init(seed: [UInt8]) {
        let keys = (0..<3).map { FakeCipher.hash([8, UInt8($0)], seed).bytes }
        // The initializer fails only for keys of another size.
        publicKeys =
            DevicePublicKeys(signing: keys[0], whenUnlockedBox: keys[1], afterFirstUnlockBox: keys[2])
            // Never called: each hash has the size of a key.
            ?? { preconditionFailure("a hash has 32 bytes") }()
    }

    package func sign(_ message: [UInt8]) throws(KeychainFailure) -> [UInt8] { Self.signature(message, publicKeys.signing) }

    static func signature(_ message: [UInt8], _ publicKey: [UInt8]) -> [UInt8] {
        let hash = FakeCipher.hash([9], publicKey, message)
        return hash.bytes + hash.bytes
    }

    package func openBox(_ box: [UInt8], binding: LaneKeyBox.Binding) throws(KeychainFailure) -> SharedSecretBytes {
        let key = Array(box.prefix(32))
        guard box.count == LaneKeyBox.byteCount,
            box[32..<64].elementsEqual(FakeCipher.boxTag(key, binding, publicKeys.box(for: binding.lane)))
        else { throw KeychainFailure(.decode, "not a box for this device") }
        return try FakeCipher.secret(key)
    }
}
