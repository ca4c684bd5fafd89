// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import KeychainCore

/// Seals the states of one store (On-disk-format.md, "State").
///
/// Row tags are not secret, and enough of them have subsets with equal sums. So the state adds up keyed digests of the tags, and the sum is
/// encrypted: the difference of two sums would reveal such a digest.
package final class StoreStateCipher: StateCipher, Sendable {
    private static let version: UInt8 = 1
    private static let byteCount = 1 + 8 + Identifier128.byteCount + 8 + 3 * UInt256.byteCount

    /// What the key is used for: the first byte of each message.
    private enum Use: UInt8 {
        case rowElement = 1
        case keybagDigest = 2
        case mask = 3
        case code = 4
    }

    private let key: HMACKey

    /// Derives the key from the row-tag key, which never changes.
    init(rowTagKey: borrowing SecretBytes, storeID: StoreID) throws(KeychainFailure) {
        key = try HMACKey(KeyPurpose.storeState.derive(from: rowTagKey, storeID: storeID))
    }

    package func element(ofRowTag tag: [UInt8]) -> UInt256 { number(.rowElement, tag) }

    package func digest(ofKeybag bytes: [UInt8]) -> UInt256 { number(.keybagDigest, bytes) }

    package func seal(_ state: StoreState) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(Self.version)
        bytes.append(littleEndian: state.changeCount)
        bytes.append(state.id)
        bytes.append(littleEndian: state.rowCount)
        bytes.append(littleEndian: state.keybagDigest)
        bytes.append(littleEndian: state.rowSum &+ number(.mask, state.id.bytes))
        bytes.append(littleEndian: number(.code, bytes))
        return bytes
    }

    package func open(_ sealed: [UInt8]) -> StoreState? {
        guard sealed.count == Self.byteCount else { return nil }
        let code = code(.code, sealed[..<(Self.byteCount - UInt256.byteCount)])
        // A digest compares itself with bytes in constant time.
        guard unsafe sealed[(Self.byteCount - UInt256.byteCount)...].withUnsafeBytes({ unsafe code == $0 }) else { return nil }
        var reader = ByteReader(sealed)
        guard reader.readByte() == Self.version, let changeCount = reader.readUInt64(),
            let id = reader.readBytes(Identifier128.byteCount).flatMap({ Identifier128($0) }), let rowCount = reader.readUInt64(),
            let keybagDigest = reader.readUInt256(), let maskedSum = reader.readUInt256()
        else { return nil }
        return StoreState(
            changeCount: changeCount, id: id, rowCount: rowCount, rowSum: maskedSum &- number(.mask, id.bytes), keybagDigest: keybagDigest)
    }

    private func number(_ use: Use, _ message: [UInt8]) -> UInt256 {
        let code = code(use, message[...])
        // A digest has 32 bytes.
        return unsafe code.withUnsafeBytes { unsafe UInt256(buffer: $0) } ?? UInt256()
    }

    private func code(_ use: Use, _ message: ArraySlice<UInt8>) -> SHA256.Digest {
        key.authenticationCode { hash in
            hash.update(littleEndian: use.rawValue)
            // The bytes are read within the closure.
            unsafe message.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) }
        }
    }
}
