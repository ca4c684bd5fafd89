// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import FoundationEssentials
package import KeychainCore

/// Rows, as On-disk-format.md, "Row", lays them out.
///
/// Each write takes a fresh item key, which seals exactly two messages under two fixed nonces and is never used again: so
/// no pair of key and nonce occurs twice. What is sealed is bound to its part, to the whole header and to the wrapped key.
extension RowCipher {
    private enum Part: UInt8 {
        case attributes = 1
        case secret = 2

        static let nonceByteCount = 12

        /// Eleven zeros and the part's number.
        var nonce: [UInt8] { [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, rawValue] }
    }

    package func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow {
        try seal(attributes, secret: secret, header: header, under: classKey, itemKey: SymmetricKey(size: .bits256))
    }

    /// As above, with a given item key, so that the tests can compare a row with one that another program made.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey, itemKey: SymmetricKey
    ) throws(KeychainFailure) -> SealedRow {
        guard header.constraints == nil else {
            throw KeychainFailure(.unimplemented, "items with access control cannot be sealed by this version")
        }
        guard header.formatVersion == RowHeader.currentFormatVersion, Self.isClass(of: header, classKey) else {
            throw KeychainFailure(.internal, "a row was to be sealed under a key that is not its own")
        }
        let wrappedItemKey = try KeyWrapping.wrap(itemKey, under: classKey.secret)
        var associatedData = associatedData(of: header, wrappedItemKey: wrappedItemKey)
        let content = secret ?? Data()
        var row = SealedRow(
            header: header, wrappedItemKey: wrappedItemKey,
            sealedAttributes: try Self.seal(
                .attributes, PartPadding.padded(attributes.encoded.span, isPresent: true), under: itemKey, &associatedData),
            sealedSecret: try Self.seal(
                .secret, PartPadding.padded(content.span, isPresent: secret != nil), under: itemKey, &associatedData),
            tag: []
        )
        row.tag = Array(tag(of: row))
        return row
    }

    package func open(
        _ row: SealedRow, includingSecret: Bool, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow {
        let itemKey = try unwrapItemKey(of: row, under: classKey)
        var associatedData = associatedData(of: row.header, wrappedItemKey: row.wrappedItemKey)
        let encoded = try Self.open(.attributes, row.sealedAttributes, under: itemKey, &associatedData)
        guard case .present(let byteCount)? = PartPadding.content(of: encoded.span),
            let attributes = ItemAttributes(encoded: encoded.span.extracting(first: byteCount))
        else { throw KeychainFailure(.decode, "the row's attributes are not in the form of this version") }
        guard includingSecret else { return OpenedRow(attributes: attributes, secret: nil) }
        return OpenedRow(attributes: attributes, secret: try Self.openSecret(of: row, under: itemKey, &associatedData))
    }

    package func openSecret(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> Data? {
        let itemKey = try unwrapItemKey(of: row, under: classKey)
        var associatedData = associatedData(of: row.header, wrappedItemKey: row.wrappedItemKey)
        return try Self.openSecret(of: row, under: itemKey, &associatedData)
    }

    private func unwrapItemKey(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> SymmetricKey {
        try Self.checkVersion(of: row.header)
        guard row.header.constraints == nil else {
            throw KeychainFailure(.decode, "the row has access control, which needs a newer version")
        }
        guard Self.isClass(of: row.header, classKey) else {
            throw KeychainFailure(.decode, "the row belongs to another class key")
        }
        guard let itemKey = KeyWrapping.unwrap(row.wrappedItemKey, under: classKey.secret) else {
            throw KeychainFailure(.decode, "the row's item key was altered, or wrapped under another class key")
        }
        return itemKey
    }

    private static func openSecret(
        of row: SealedRow, under itemKey: SymmetricKey, _ associatedData: inout [UInt8]
    ) throws(KeychainFailure) -> Data? {
        let secret = try open(.secret, row.sealedSecret, under: itemKey, &associatedData)
        switch PartPadding.content(of: secret.span) {
        case .present(let byteCount): return secret.prefix(byteCount)
        case .absent: return nil
        case nil: throw KeychainFailure(.decode, "the row's secret is not in the form of this version")
        }
    }

    package func isIntact(_ row: SealedRow) throws(KeychainFailure) -> Bool {
        try Self.checkVersion(of: row.header)
        let expected = tag(of: row)
        // A digest compares itself with bytes in constant time.
        return unsafe row.tag.withUnsafeBytes { unsafe expected == $0 }
    }

    /// HMAC-SHA256 under the row-tag key over the header's encoding and every other column, each behind its byte count.
    private func tag(of row: SealedRow) -> SHA256.Digest {
        rowTagKey.authenticationCode { hash in
            hash.update(lengthPrefixed: row.header.encoded(storeID: storeID))
            hash.update(lengthPrefixed: row.wrappedItemKey)
            hash.update(lengthPrefixed: row.sealedAttributes)
            hash.update(lengthPrefixed: row.sealedSecret)
        }
    }

    /// The part's number, the header, which says itself where it ends, and the wrapped key behind its count.
    private func associatedData(of header: RowHeader, wrappedItemKey: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.encodedByteCount + wrappedItemKey.count + 5)
        bytes.append(0)
        header.appendEncoded(to: &bytes, storeID: storeID)
        bytes.append(lengthPrefixed: wrappedItemKey)
        return bytes
    }

    private static func checkVersion(of header: RowHeader) throws(KeychainFailure) {
        guard header.formatVersion <= RowHeader.currentFormatVersion else {
            throw KeychainFailure(.decode, "the row was written by a newer version")
        }
    }

    private static func isClass(of header: RowHeader, _ classKey: borrowing ClassKey) -> Bool {
        header.accessibility == classKey.accessibility && header.classKeyGeneration == classKey.generation
    }

    private static func seal(
        _ part: Part, _ plaintext: [UInt8], under itemKey: SymmetricKey, _ associatedData: inout [UInt8]
    ) throws(KeychainFailure) -> [UInt8] {
        associatedData[0] = part.rawValue
        do {
            let box = try AES.GCM.seal(
                plaintext, using: itemKey, nonce: AES.GCM.Nonce(data: part.nonce), authenticating: associatedData
            )
            guard let combined = box.combined else { throw KeychainFailure(.internal, "a sealed part has no usual nonce") }
            // The bytes are copied within the closure.
            return unsafe combined.withUnsafeBytes { unsafe Array($0[Part.nonceByteCount...]) }
        } catch {
            throw KeychainFailure(.internal, "a part of a row could not be sealed")
        }
    }

    private static func open(
        _ part: Part, _ sealed: [UInt8], under itemKey: SymmetricKey, _ associatedData: inout [UInt8]
    ) throws(KeychainFailure) -> Data {
        associatedData[0] = part.rawValue
        do {
            // One buffer for nonce, ciphertext and tag: the box takes it as it is, and would copy three parts byte by byte.
            var combined = Data(count: Part.nonceByteCount + sealed.count)
            // The nonce, which is zeros but for its last byte, and then exactly what room is left for.
            unsafe combined.withUnsafeMutableBytes { buffer in
                unsafe buffer[Part.nonceByteCount - 1] = part.rawValue
                unsafe sealed.withUnsafeBytes { sealed in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[Part.nonceByteCount...]).copyMemory(from: sealed)
                }
            }
            let box = try AES.GCM.SealedBox(combined: combined)
            return try AES.GCM.open(box, using: itemKey, authenticating: associatedData)
        } catch {
            throw KeychainFailure(.decode, "a part of the row was altered, or is not this row's")
        }
    }
}
