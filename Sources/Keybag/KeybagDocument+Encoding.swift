// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import FoundationEssentials
package import KeychainCore

/// The encoding of a keybag (On-disk-format.md, "Keybag"):
///
///     "KBAG" ‖ version (2) ‖ store id (16) ‖ fields ‖ HMAC-SHA256 of all before it (32)
///     field = tag (2) ‖ byte count (4) ‖ bytes, in ascending order of tag, each at most once
///
/// The frame and the authentication are the same in every version, so that "damaged" and "newer" can always be distinguished.
extension KeybagDocument {
    private static let magic = Array("KBAG".utf8)
    private static let currentVersion: UInt16 = 1
    static let codeByteCount = 32

    /// The fields of this version.
    ///
    /// On-disk-format.md reserves tags for later versions. A version must neither use nor rewrite a keybag with a field that it does
    /// not know.
    enum Tag: UInt16 {
        case generation = 1
        case protector = 2
        case indexKey = 3
        case rowTagKey = 4
        case classKeys = 5
        case passcode = 16
        case presence = 17
        case recovery = 18
        case sealedPasscodeSecret = 19
    }

    /// Encodes and authenticates a new keybag.
    init(storeID: StoreID, content: Content, authenticatedBy key: borrowing HMACKey) {
        var bytes = Self.magic
        bytes.append(littleEndian: Self.currentVersion)
        bytes.append(contentsOf: storeID.bytes)
        func append(_ tag: Tag, _ value: [UInt8]) {
            bytes.append(littleEndian: tag.rawValue)
            bytes.append(lengthPrefixed: value)
        }
        var generation: [UInt8] = []
        generation.append(littleEndian: content.generation)
        append(.generation, generation)
        append(.protector, [content.protector.kind.rawValue] + content.protector.parameters)
        append(.indexKey, content.wrappedIndexKey)
        append(.rowTagKey, content.wrappedRowTagKey)
        append(.classKeys, content.classKeys.flatMap(Self.encode))
        if let passcode = content.passcode { append(.passcode, passcode.encoded) }
        if let presence = content.presence { append(.presence, presence.encoded) }
        if let recovery = content.recovery { append(.recovery, recovery.encoded) }
        if let sealed = content.sealedPasscodeSecret { append(.sealedPasscodeSecret, sealed.encoded) }
        bytes.append(contentsOf: Self.code(over: bytes[...], by: key))
        self.init(storeID: storeID, content: content, encoded: bytes)
    }

    /// Whether these bytes are an unaltered keybag of the store that the key belongs to.
    ///
    /// Check this before using anything in them.
    static func isAuthentic(_ bytes: [UInt8], by key: borrowing HMACKey) -> Bool {
        guard bytes.count > codeByteCount else { return false }
        let code = code(over: bytes.dropLast(codeByteCount), by: key)
        // A digest compares itself with bytes in constant time.
        return unsafe bytes.suffix(codeByteCount).withUnsafeBytes { unsafe code == $0 }
    }

    /// Parses bytes that `isAuthentic` approved.
    ///
    /// Throws `.notAvailable` for a keybag of a newer version, or of a form that no version writes.
    init(authentic bytes: [UInt8], storeID: StoreID) throws(KeychainFailure) {
        var reader = ByteReader(bytes.dropLast(Self.codeByteCount))
        guard reader.readBytes(Self.magic.count).map(Array.init) == Self.magic, let version = reader.readUInt16() else {
            throw Self.malformed()
        }
        guard version == Self.currentVersion else { throw Self.newer() }
        guard reader.readBytes(StoreID.byteCount).flatMap({ StoreID($0) }) == storeID else { throw Self.malformed() }
        let fields = try Self.fields(from: &reader)
        guard let generation = fields[.generation], let protector = fields[.protector], let indexKey = fields[.indexKey],
            let rowTagKey = fields[.rowTagKey], let classKeys = fields[.classKeys], generation.count == 8,
            indexKey.count == KeyWrapping.wrappedByteCount, rowTagKey.count == KeyWrapping.wrappedByteCount
        else { throw Self.malformed() }
        var generationReader = ByteReader(generation)
        var passcode: PasscodeRecord?
        if let field = fields[.passcode] { passcode = try PasscodeRecord(encoded: field) }
        var presence: PresenceRecord?
        if let field = fields[.presence] {
            // The passcode key wraps its private key.
            guard passcode != nil else { throw Self.malformed() }
            presence = try PresenceRecord(encoded: field)
        }
        let protectorRecord = try Self.protector(from: protector)
        let sealedPasscodeSecret = try fields[.sealedPasscodeSecret].map(Self.sealedObject)
        // The TPM has a part of the passcode key exactly if it has the device secret and a passcode is set.
        guard (sealedPasscodeSecret != nil) == (protectorRecord.kind == .tpm2 && passcode != nil) else { throw Self.malformed() }
        let recovery = try fields[.recovery].map { field throws(KeychainFailure) in try RecoveryRecord(encoded: field) }
        if let recovery {
            guard (recovery.sealedPasscodeSecret != nil) == (sealedPasscodeSecret != nil) else { throw Self.malformed() }
        }
        let content = Content(
            generation: generationReader.readUInt64() ?? 0, protector: protectorRecord,
            wrappedIndexKey: Array(indexKey), wrappedRowTagKey: Array(rowTagKey),
            classKeys: try Self.classKeys(from: classKeys, isPasscodeSet: passcode != nil), passcode: passcode,
            presence: presence, recovery: recovery, sealedPasscodeSecret: sealedPasscodeSecret
        )
        self.init(storeID: storeID, content: content, encoded: bytes)
    }

    /// The protectors that a store's copies name, read before the copies can be authenticated.
    ///
    /// They are hints about where to find the device secret, which then authenticates the keybag. Sound copies name the same protector.
    /// The result is empty if no copy can be parsed. Throws `.notAvailable` if the copies are of a newer version.
    package static func protectorHints(in unauthenticatedCopies: [[UInt8]]) throws(KeychainFailure) -> [ProtectorRecord] {
        var hints: [ProtectorRecord] = []
        var failure: KeychainFailure?
        for copy in newestFirst(unauthenticatedCopies) {
            do throws(KeychainFailure) {
                if let hint = try protectorHint(in: copy), !hints.contains(hint) { hints.append(hint) }
            } catch {
                failure = error
            }
        }
        if hints.isEmpty, let failure { throw failure }
        return hints
    }

    /// The copies in descending order of the generation that they claim.
    ///
    /// A disk that lost a write may have left one copy from before a change of protectors, and that protector may still exist.
    static func newestFirst(_ unauthenticatedCopies: [[UInt8]]) -> [[UInt8]] {
        func generation(_ copy: [UInt8]) -> UInt64 {
            do throws(KeychainFailure) {
                var reader = ByteReader(try hint(.generation, in: copy) ?? [])
                return reader.readUInt64() ?? 0
            } catch {
                return 0
            }
        }
        return unauthenticatedCopies.sorted { generation($0) > generation($1) }
    }

    private static func protectorHint(in bytes: [UInt8]) throws(KeychainFailure) -> ProtectorRecord? {
        guard let value = try hint(.protector, in: bytes) else { return nil }
        return try protector(from: value)
    }

    /// A field of unauthenticated bytes; nil if it is not found.
    static func hint(_ wanted: Tag, in bytes: [UInt8]) throws(KeychainFailure) -> ArraySlice<UInt8>? {
        var reader = ByteReader(bytes.dropLast(codeByteCount))
        guard reader.readBytes(magic.count).map(Array.init) == magic, let version = reader.readUInt16() else { return nil }
        guard version == currentVersion else { throw newer() }
        guard reader.readBytes(StoreID.byteCount) != nil else { return nil }
        while let tag = reader.readUInt16(), let value = reader.readLengthPrefixed() {
            if tag == wanted.rawValue { return value }
        }
        return nil
    }

    private static func fields(from reader: inout ByteReader) throws(KeychainFailure) -> [Tag: ArraySlice<UInt8>] {
        var fields: [Tag: ArraySlice<UInt8>] = [:]
        var last: UInt16 = 0
        while !reader.isAtEnd {
            guard let number = reader.readUInt16(), let value = reader.readLengthPrefixed(), number > last else { throw malformed() }
            guard let tag = Tag(rawValue: number) else { throw newer() }
            fields[tag] = value
            last = number
        }
        return fields
    }

    private static func protector(from bytes: ArraySlice<UInt8>) throws(KeychainFailure) -> ProtectorRecord {
        guard let number = bytes.first else { throw malformed() }
        guard let kind = DeviceProtectorKind(rawValue: number) else { throw newer() }
        let record = ProtectorRecord(kind: kind, parameters: Array(bytes.dropFirst()))
        if kind == .tpm2 { _ = try record.sealedDeviceSecret() }
        return record
    }

    static func sealedObject(from bytes: some Collection<UInt8>) throws(KeychainFailure) -> SealedObject {
        do throws(SealedObject.EncodingFailure) {
            return try SealedObject(encoded: bytes)
        } catch {
            throw error == .newerVersion ? newer() : malformed()
        }
    }

    private static func code(over bytes: ArraySlice<UInt8>, by key: borrowing HMACKey) -> SHA256.Digest {
        key.authenticationCode { hash in
            // The bytes are read within the closure.
            unsafe bytes.withUnsafeBytes { unsafe hash.update(bufferPointer: $0) }
        }
    }

    static func newer() -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the keybag was written by a newer version; use that version", subject: .keybag,
            cause: .newerVersion)
    }

    static func malformed() -> KeychainFailure {
        KeychainFailure(
            .notAvailable, "the keybag is authentic but not in any known form", subject: .keybag, cause: .malformed)
    }

    static func noSuchKey(_ id: ClassKeyID) -> KeychainFailure {
        KeychainFailure(.decode, "the keybag has no class key \(id.accessibility.rawValue) of generation \(id.generation)")
    }
}

/// The encoding of the class keys, and the rules for their wrapping.
///
///     entry = accessibility (1) ‖ generation (4) ‖ wrapping (1) ‖ wrapped key (40) ‖ check value (16)
extension KeybagDocument {
    static func encode(_ entry: ClassKeyEntry) -> [UInt8] {
        var bytes: [UInt8] = [entry.id.accessibility.code]
        bytes.append(littleEndian: entry.id.generation)
        bytes.append(entry.wrapping.rawValue)
        return bytes + entry.wrappedKey + entry.checkValue
    }

    static func classKeys(from bytes: ArraySlice<UInt8>, isPasscodeSet: Bool) throws(KeychainFailure) -> [ClassKeyEntry] {
        var reader = ByteReader(bytes)
        var entries: [ClassKeyEntry] = []
        while !reader.isAtEnd {
            let entry = try classKey(from: &reader)
            if let last = entries.last?.id {
                guard (last.accessibility.code, last.generation) < (entry.id.accessibility.code, entry.id.generation) else {
                    throw malformed()
                }
            }
            // While a passcode is set, the device key must not wrap this class key: a lock could not remove it.
            guard entry.wrapping == wrapping(of: entry.id.accessibility, isPasscodeSet: isPasscodeSet) else { throw malformed() }
            entries.append(entry)
        }
        for accessibility in ItemAccessibility.allCases where wrapping(of: accessibility, isPasscodeSet: isPasscodeSet) != nil {
            guard entries.contains(where: { $0.id.accessibility == accessibility }) else { throw malformed() }
        }
        return entries
    }

    private static func classKey(from reader: inout ByteReader) throws(KeychainFailure) -> ClassKeyEntry {
        guard let code = reader.readByte(), let generation = reader.readUInt32(), let wrappingCode = reader.readByte(),
            let wrappedKey = reader.readBytes(KeyWrapping.wrappedByteCount), let check = reader.readBytes(ClassKeyCheck.byteCount)
        else { throw malformed() }
        guard let accessibility = ItemAccessibility(code: code), let wrapping = Wrapping(rawValue: wrappingCode) else { throw newer() }
        guard generation > 0 else { throw malformed() }
        return ClassKeyEntry(
            id: ClassKeyID(accessibility, generation: generation), wrapping: wrapping, wrappedKey: Array(wrappedKey),
            checkValue: Array(check)
        )
    }

    /// The key that wraps the keys of a class; nil if the class has no keys.
    static func wrapping(of accessibility: ItemAccessibility, isPasscodeSet: Bool) -> Wrapping? {
        if accessibility.holderSlot != nil && isPasscodeSet { return .passcodeKey }
        return accessibility == .whenPasscodeSetThisDeviceOnly ? nil : .deviceKey
    }
}
