// SPDX-License-Identifier: Apache-2.0
internal import Crypto
package import FoundationEssentials
package import KeychainCore

/// Seals and opens the rows of one store.
///
/// It has the two keys that need no class key: for digests and for row tags.
package final class RowCipher: ItemCipher, Sendable {
    package let storeID: StoreID
    let indexKey: HMACKey
    let rowTagKey: HMACKey
    package let presencePublicKey: [UInt8]?
    /// The cost of application passwords in new items.
    let applicationPasswordCost: PasscodeCost

    init(
        storeID: StoreID, indexKey: borrowing SecretBytes, rowTagKey: borrowing SecretBytes, presencePublicKey: [UInt8]?,
        applicationPasswordCost: PasscodeCost
    ) throws(KeychainFailure) {
        self.storeID = storeID
        self.presencePublicKey = presencePublicKey
        self.applicationPasswordCost = applicationPasswordCost
        self.indexKey = try HMACKey(indexKey)
        self.rowTagKey = try HMACKey(rowTagKey)
    }

    package func fingerprint(of attributes: ItemAttributes, secret: Data?) -> Data {
        var hash = Insecure.SHA1()
        hash.update(data: attributes.encoded)
        hash.update(data: [secret == nil ? 0 : 1] as [UInt8])
        if let secret { hash.update(data: secret) }
        return Data(hash.finalize())
    }
}

/// Sealing and opening rows (On-disk-format.md, "Row").
///
/// Each write uses a new random item key for exactly two messages with two fixed nonces, so no pair of key and nonce occurs twice. The
/// associated data is the part's number, the whole header, and the wrapped key.
extension RowCipher {
    private enum Part: UInt8 {
        case attributes = 1
        case secret = 2

        static let nonceByteCount = 12

        /// Eleven zeros and the part's number.
        var nonce: [UInt8] { [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, rawValue] }
    }

    package func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, constraint: SealingConstraint?,
        with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow {
        var header = header
        guard let constraint else {
            header.constraints = nil
            return try seal(attributes, secret: secret, header: header, under: classKey, itemKey: SymmetricKey(size: .bits256))
        }
        let (rootKey, record) = try rootKey(for: constraint, with: keys)
        header.constraints = record.encoded
        return try seal(
            attributes, secret: secret, header: header, rootKey: rootKey, under: classKey, itemKey: SymmetricKey(size: .bits256))
    }

    private func rootKey(
        for constraint: SealingConstraint, with keys: ConstraintKeys
    ) throws(KeychainFailure) -> (key: SharedSecretBytes, record: ConstraintRecord) {
        switch constraint {
        case .new(let constraint):
            let sealing = ConstraintSealing(
                storeID: storeID, presencePublicKey: presencePublicKey, applicationPassword: keys.applicationPassword,
                applicationPasswordCost: applicationPasswordCost, enrollment: keys.enrollment)
            return try sealing.seal(constraint)
        case .former(let record): return (try ConstraintOpening(storeID: storeID, keys: keys).key(of: record), record)
        }
    }

    /// Seals a row under a given item key, so that tests can compare with rows of another implementation.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey, itemKey: SymmetricKey
    ) throws(KeychainFailure) -> SealedRow {
        guard header.constraints == nil else {
            throw KeychainFailure(.internal, "a row with access control cannot be sealed without it")
        }
        try Self.checkForSealing(header, under: classKey)
        let wrappedItemKey = try KeyWrapping.wrap(itemKey, under: classKey.secret)
        return try sealParts(attributes, secret, header, itemKey, wrappedItemKey: wrappedItemKey, boundTo: wrappedItemKey)
    }

    /// Seals a row with access control: the root's key wraps the item key, and the class key wraps the result.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, rootKey: SharedSecretBytes, under classKey: borrowing ClassKey,
        itemKey: SymmetricKey
    ) throws(KeychainFailure) -> SealedRow {
        try Self.checkForSealing(header, under: classKey)
        let inner = try KeyWrapping.wrap(itemKey, under: rootKey.secret)
        let outer = try KeyWrapping.wrap(wrapped: inner, under: classKey.secret)
        return try sealParts(attributes, secret, header, itemKey, wrappedItemKey: outer, boundTo: inner)
    }

    private static func checkForSealing(_ header: RowHeader, under classKey: borrowing ClassKey) throws(KeychainFailure) {
        guard header.formatVersion == RowHeader.formatVersion, isClass(of: header, classKey) else {
            throw KeychainFailure(.internal, "a row cannot be sealed under the key of another class")
        }
    }

    private func sealParts(
        _ attributes: ItemAttributes, _ secret: Data?, _ header: RowHeader, _ itemKey: SymmetricKey, wrappedItemKey: [UInt8],
        boundTo boundKey: [UInt8]
    ) throws(KeychainFailure) -> SealedRow {
        let content = secret ?? Data()
        var padded = PartPadding.padded(content.span, isPresent: secret != nil)
        defer { padded.wipe() }
        return try sealPlaintexts(
            attributes: PartPadding.padded(attributes.encoded.span, isPresent: true), secret: padded, header, itemKey,
            wrappedItemKey: wrappedItemKey, boundTo: boundKey)
    }

    /// Seals arbitrary plaintexts of both parts, so that fuzzing reaches the code behind the authentication.
    func sealPlaintexts(
        attributes: [UInt8], secret: [UInt8], _ header: RowHeader, _ itemKey: SymmetricKey, wrappedItemKey: [UInt8],
        boundTo boundKey: [UInt8]
    ) throws(KeychainFailure) -> SealedRow {
        var associatedData = associatedData(of: header, wrappedItemKey: boundKey)
        var row = SealedRow(
            header: header, wrappedItemKey: wrappedItemKey,
            sealedAttributes: try Self.seal(.attributes, attributes, under: itemKey, &associatedData),
            sealedSecret: try Self.seal(.secret, secret, under: itemKey, &associatedData),
            tag: []
        )
        row.tag = Array(tag(of: row))
        return row
    }

    package func open(
        _ row: SealedRow, includingSecret: Bool, keeping attributes: AttributeSelection, with keys: ConstraintKeys,
        under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow {
        let (itemKey, boundKey) = try unwrapItemKey(of: row, with: keys, under: classKey)
        var associatedData = associatedData(of: row.header, wrappedItemKey: boundKey)
        let encoded = try Self.open(.attributes, row.sealedAttributes, under: itemKey, &associatedData)
        guard case .present(let byteCount)? = PartPadding.content(of: encoded.span),
            let attributes = ItemAttributes(encoded: encoded.span.extracting(first: byteCount), keeping: attributes)
        else { throw KeychainFailure(.decode, "the row's attributes are not in the form of this version", cause: .malformed) }
        guard includingSecret else { return OpenedRow(attributes: attributes, secret: nil) }
        return OpenedRow(attributes: attributes, secret: try Self.openSecret(of: row, under: itemKey, &associatedData))
    }

    package func openSecret(
        of row: SealedRow, with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> Data? {
        let (itemKey, boundKey) = try unwrapItemKey(of: row, with: keys, under: classKey)
        var associatedData = associatedData(of: row.header, wrappedItemKey: boundKey)
        return try Self.openSecret(of: row, under: itemKey, &associatedData)
    }

    /// The item key, and the wrapped key that the sealed parts are bound to.
    private func unwrapItemKey(
        of row: SealedRow, with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> (SymmetricKey, boundKey: [UInt8]) {
        try Self.checkVersion(of: row.header)
        guard Self.isClass(of: row.header, classKey) else {
            throw KeychainFailure(.decode, "the row belongs to another class key")
        }
        guard let constraints = row.header.constraints else {
            guard let itemKey = KeyWrapping.unwrap(row.wrappedItemKey, under: classKey.secret) else { throw Self.alteredItemKey() }
            return (itemKey, row.wrappedItemKey)
        }
        guard let record = ConstraintRecord(encoded: constraints) else {
            throw KeychainFailure(.decode, "the row has access control of a newer version, or it was altered", cause: .newerVersion)
        }
        let inner = try unwrapOuter(of: row, under: classKey)
        let rootKey = try ConstraintOpening(storeID: storeID, keys: keys).key(of: record)
        guard let itemKey = KeyWrapping.unwrap(inner, under: rootKey.secret) else { throw Self.alteredItemKey() }
        return (itemKey, inner)
    }

    /// Removes the class key's wrapping from a row with access control.
    ///
    /// The result is the item key wrapped under the root's key.
    private func unwrapOuter(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> [UInt8] {
        guard let inner = KeyWrapping.unwrap(twiceWrapped: row.wrappedItemKey, under: classKey.secret) else {
            throw Self.alteredItemKey()
        }
        return inner
    }

    private static func alteredItemKey() -> KeychainFailure {
        KeychainFailure(.decode, "the row's item key was altered, or wrapped under another class key")
    }

    package func rewrapConstrained(
        _ row: SealedRow, from oldKey: borrowing ClassKey, to newKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow {
        try Self.checkVersion(of: row.header)
        guard row.header.constraints != nil, Self.isClass(of: row.header, oldKey), newKey.accessibility == oldKey.accessibility else {
            throw KeychainFailure(.decode, "the row belongs to another class key")
        }
        let inner = try unwrapOuter(of: row, under: oldKey)
        var renewed = row
        renewed.header.classKeyGeneration = newKey.generation
        renewed.wrappedItemKey = try KeyWrapping.wrap(wrapped: inner, under: newKey.secret)
        renewed.tag = Array(tag(of: renewed))
        return renewed
    }

    private static func openSecret(
        of row: SealedRow, under itemKey: SymmetricKey, _ associatedData: inout [UInt8]
    ) throws(KeychainFailure) -> Data? {
        let secret = try open(.secret, row.sealedSecret, under: itemKey, &associatedData)
        switch PartPadding.content(of: secret.span) {
        case .present(let byteCount):
            // The content is in the same memory, unless it is short.
            guard byteCount <= MemoryLayout<Data>.size else { return secret.prefix(byteCount) }
            defer { secret.wipeShared() }
            // The bytes are copied within the closure.
            return unsafe secret.withUnsafeBytes { unsafe Data(onHeap: UnsafeRawBufferPointer(rebasing: $0[..<byteCount])) }
        case .absent: return nil
        case nil: throw KeychainFailure(.decode, "the row's secret is not in the form of this version", cause: .malformed)
        }
    }

    package func isIntact(_ row: SealedRow) -> Bool {
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

    /// The part's number, the self-delimiting header, and the wrapped key with its byte count.
    ///
    /// With access control the wrapped key is the inner one and the class key's generation counts as 0. So the outer wrapping can be
    /// replaced by one under another generation's class key without authentication.
    private func associatedData(of header: RowHeader, wrappedItemKey: [UInt8]) -> [UInt8] {
        var header = header
        if header.constraints != nil { header.classKeyGeneration = 0 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.encodedByteCount + wrappedItemKey.count + 5)
        bytes.append(0)
        header.appendEncoded(to: &bytes, storeID: storeID)
        bytes.append(lengthPrefixed: wrappedItemKey)
        return bytes
    }

    private static func checkVersion(of header: RowHeader) throws(KeychainFailure) {
        guard header.formatVersion == RowHeader.formatVersion else {
            throw KeychainFailure(.decode, "the row's format version was altered, or a column is not in the form of this version")
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
            guard let combined = box.combined else { throw KeychainFailure(.internal, "a sealed part has a nonce of another size") }
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
            // One buffer for nonce, ciphertext, and tag: the box uses it without a copy, but would copy separate parts byte by byte.
            var combined = Data(count: Part.nonceByteCount + sealed.count)
            // The nonce is zeros except its last byte; the rest of the buffer has exactly the size of `sealed`.
            unsafe combined.withUnsafeMutableBytes { buffer in
                unsafe buffer[Part.nonceByteCount - 1] = part.rawValue
                unsafe sealed.withUnsafeBytes { sealed in
                    unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[Part.nonceByteCount...]).copyMemory(from: sealed)
                }
            }
            let box = try AES.GCM.SealedBox(combined: combined)
            return try AES.GCM.open(box, using: itemKey, authenticating: associatedData)
        } catch {
            throw KeychainFailure(.decode, "a part of the row was altered, or belongs to another row")
        }
    }
}
