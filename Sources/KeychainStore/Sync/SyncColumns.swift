// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

// Values of the ledger as columns and parameters of a statement.

extension SQLiteStatement {
    func bind(_ identifier: some SyncIdentifier, at index: Int32) { bind(identifier.value, at: index) }

    func bind(_ identifier: Identifier128?, at index: Int32) {
        if let identifier { bind(identifier, at: index) } else { bindNull(at: index) }
    }

    /// Binds an origin to three parameters: the number of the log, the number of the batch, and the hash.
    ///
    /// Nil stands for a version that is in no batch yet.
    func bind(_ origin: Origin?, log: Int64, at first: Int32) {
        bind(log, at: first)
        bind(origin.map { Int64(bitPattern: $0.number) } ?? 0, at: first + 1)
        if let origin { bind(origin.hash, at: first + 2) } else { bindEmpty(at: first + 2) }
    }

    /// Whether the statement returns a row; the statement can be used again afterwards.
    func hasRow() throws(KeychainFailure) -> Bool {
        defer { reset() }
        return try step()
    }

    /// Returns the value of a column that contains 16 bytes.
    func required<ID: SyncIdentifier>(_: ID.Type, at column: Int32) throws(KeychainFailure) -> ID {
        guard let value = identifier(at: column) else { throw StoreSession.ledgerDamaged }
        return ID(value)
    }

    /// Returns the hash whose halves are in two columns.
    func hash(at first: Int32) throws(KeychainFailure) -> ObjectHash {
        guard let prefix = identifier(at: first), let suffix = identifier(at: first + 1) else { throw StoreSession.ledgerDamaged }
        return ObjectHash(prefix: prefix, suffix: suffix)
    }

    /// Returns the reference in four columns: identifier, log or NULL, number, hash.
    func reference(at first: Int32) throws(KeychainFailure) -> VersionReference {
        let id = try required(SyncVersionID.self, at: first)
        guard !isNull(at: first + 1) else { return VersionReference(id: id, origin: nil) }
        guard let hash = identifier(at: first + 3) else { throw StoreSession.ledgerDamaged }
        let log = try required(LogID.self, at: first + 1)
        return VersionReference(id: id, origin: Origin(log: log, number: UInt64(bitPattern: integer(at: first + 2)), hash: hash))
    }

    func lane(at column: Int32) throws(KeychainFailure) -> Lane {
        guard let lane = UInt8(exactly: integer(at: column)).flatMap(Lane.init(rawValue:)) else { throw StoreSession.ledgerDamaged }
        return lane
    }

    /// Returns the item of the row whose identifier is in the first column, if it synchronizes.
    ///
    /// The flags, the accessibility, and the revision are in the columns from `first` on.
    func sharedItem(at first: Int32) -> SharedItem? {
        guard let item = identifier(at: 0), let revision = identifier(at: first + 3),
            let accessibility = UInt8(exactly: integer(at: first + 2)).flatMap(ItemAccessibility.init(code:))
        else { return nil }
        return SharedItem(
            item: item, revision: revision, accessibility: accessibility, isSynchronizable: integer(at: first) != 0,
            isTombstone: integer(at: first + 1) != 0)
    }
}

/// The encoding of the replaced versions of a pending version, in one column.
enum ReplacedVersions {
    private static let byteCount = 1 + 16 + 16 + 8 + 16

    static func encoded(_ references: [VersionReference]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(references.count * byteCount)
        for reference in references {
            bytes.append(reference.origin == nil ? 0 : 1)
            bytes.append(reference.id.value)
            bytes.append(reference.origin?.log.value ?? zero)
            bytes.append(littleEndian: reference.origin?.number ?? 0)
            bytes.append(reference.origin?.hash ?? zero)
        }
        return bytes
    }

    /// Returns nil for bytes of another encoding.
    static func decoded(_ bytes: [UInt8]) -> [VersionReference]? {
        var reader = ByteReader(bytes)
        var references: [VersionReference] = []
        while !reader.isAtEnd {
            guard let hasOrigin = reader.readByte(), let id = reader.readIdentifier(), let log = reader.readIdentifier(),
                let number = reader.readUInt64(), let hash = reader.readIdentifier()
            else { return nil }
            let origin = hasOrigin == 0 ? nil : Origin(log: LogID(log), number: number, hash: hash)
            references.append(VersionReference(id: SyncVersionID(id), origin: origin))
        }
        return references
    }

    private static let zero = Identifier128(high: 0, low: 0)
}
