// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The ledger's settings, outgoing objects, and statements.
extension StoreSession: SyncStoreWriting {
    // MARK: Settings

    func setting(_ key: SyncSetting) throws(KeychainFailure) -> [UInt8]? { try setting(named: key.rawValue) }

    func set(_ key: SyncSetting, to value: [UInt8]?) throws(KeychainFailure) { try set(key.rawValue, to: value) }

    /// Settings of the store itself, in the table of the engine's settings.
    private enum OwnSetting {
        /// The number of live versions, 8 bytes: SQLite would count them one by one.
        static let versionCount = "store.versionCount"
    }

    func mayLackRecords() throws(KeychainFailure) -> Bool { try setting(named: SyncSchema.lackOfRecords) != nil }

    func recordUnknownRows() throws(KeychainFailure) -> Int {
        let statement = try connection.statement(.recordUnknownRows)
        do throws(KeychainFailure) {
            try statement.run()
        } catch {
            guard error.isDamage else { throw error }
            return 0
        }
        let count = connection.changedRowCount
        try set(SyncSchema.lackOfRecords, to: nil)
        return count
    }

    /// The number of live versions without the changes of this transaction.
    func storedVersionCount() throws(KeychainFailure) -> Int {
        guard let bytes = try setting(named: OwnSetting.versionCount) else { return 0 }
        var reader = ByteReader(bytes)
        guard let count = reader.readUInt64(), reader.isAtEnd, let count = Int(exactly: count) else { throw Self.ledgerDamaged }
        return count
    }

    /// Stores the number of live versions after a transaction that has changed it.
    func storeVersionCount() throws(KeychainFailure) {
        guard versionCountChange != 0 else { return }
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt64(clamping: try liveVersionCount()))
        try set(OwnSetting.versionCount, to: bytes)
        versionCountChange = 0
    }

    private func setting(named name: String) throws(KeychainFailure) -> [UInt8]? {
        let statement = try connection.statement(.setting)
        var value: [UInt8]?
        try statement.withBound([SQLiteStatement.Blob(index: 1, text: name)]) { () throws(KeychainFailure) in
            defer { statement.reset() }
            if try statement.step() { value = statement.bytes(at: 0) }
        }
        return value
    }

    private func set(_ name: String, to value: [UInt8]?) throws(KeychainFailure) {
        var blobs = [SQLiteStatement.Blob(index: 1, text: name)]
        if let value { blobs.append(SQLiteStatement.Blob(index: 2, bytes: value)) }
        try run(value == nil ? .removeSetting : .setSetting, blobs)
    }

    // MARK: Outgoing objects

    func outgoingNames() throws(KeychainFailure) -> [String] {
        let statement = try connection.statement(.outgoingNames)
        defer { statement.reset() }
        var names: [String] = []
        while try statement.step() { names.append(statement.text(at: 0)) }
        return names
    }

    func outgoingBytes(_ name: String) throws(KeychainFailure) -> [UInt8]? {
        let statement = try connection.statement(.outgoingBytes)
        var bytes: [UInt8]?
        try statement.withBound([SQLiteStatement.Blob(index: 1, text: name)]) { () throws(KeychainFailure) in
            defer { statement.reset() }
            if try statement.step() { bytes = statement.bytes(at: 0) }
        }
        return bytes
    }

    func insert(_ object: OutgoingObject) throws(KeychainFailure) {
        try run(
            .insertOutgoing, [SQLiteStatement.Blob(index: 1, text: object.name), SQLiteStatement.Blob(index: 2, bytes: object.bytes)])
    }

    func removeOutgoing(_ name: String) throws(KeychainFailure) {
        // The storage has these bytes too.
        try connection.withoutOverwritingFreedPages { () throws(KeychainFailure) in
            try run(.removeOutgoing, [SQLiteStatement.Blob(index: 1, text: name)])
        }
    }

    // MARK: Statements

    func statements() throws(KeychainFailure) -> [StoredStatement] {
        let statement = try connection.statement(.statements)
        defer { statement.reset() }
        var statements: [StoredStatement] = []
        while try statement.step() {
            guard let hash = StatementHash(statement.bytes(at: 0)) else { throw Self.ledgerDamaged }
            statements.append(StoredStatement(hash: hash, bytes: statement.bytes(at: 1)))
        }
        return statements
    }

    func insert(_ statement: StoredStatement) throws(KeychainFailure) {
        try run(
            .insertStatement,
            [SQLiteStatement.Blob(index: 1, bytes: statement.hash.bytes), SQLiteStatement.Blob(index: 2, bytes: statement.bytes)])
    }

    private func run(_ name: SyncStatement, _ blobs: [SQLiteStatement.Blob]) throws(KeychainFailure) {
        let statement = try connection.statement(name)
        try statement.withBound(blobs[...]) { () throws(KeychainFailure) in try statement.run() }
    }
}
