// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The tables that a store has only while synchronization is on.
///
/// Part of the on-disk format. An origin takes three columns: the number of its log in `sync_logs`, the number of the batch, and the first 16
/// bytes of the batch's hash. Log 0, batch 0, and an empty hash stand for a version that is in no batch yet.
enum SyncSchema {
    /// The number of the first conflict copy, greater than that of every item, so that a number leads to one row.
    static let firstCopyNumber: Int64 = 1 << 62

    /// `sync_changes` is written by every program, all other tables only by the agent.
    ///
    /// `sync_changes_kind` finds deletions among a million writes, and has no entries for writes. The indexes of `sync_versions` contain as little
    /// as possible: there may be a million versions. `report` counts the marks of a device that others have to be told, in the order in which they
    /// were stored; it is NULL for all others.
    static let statements = """
        CREATE TABLE sync_changes (item BLOB PRIMARY KEY, kind INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX sync_changes_kind ON sync_changes (kind) WHERE kind > 1;
        CREATE TABLE sync_settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE sync_logs (number INTEGER PRIMARY KEY, log BLOB NOT NULL) STRICT;
        CREATE UNIQUE INDEX sync_logs_log ON sync_logs (log);
        CREATE TABLE sync_versions (
            number INTEGER PRIMARY KEY, id BLOB NOT NULL, log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL,
            name BLOB NOT NULL, lane INTEGER NOT NULL, date REAL, digest BLOB, item BLOB
        ) STRICT;
        CREATE INDEX sync_versions_id ON sync_versions (id);
        CREATE INDEX sync_versions_name ON sync_versions (name);
        CREATE INDEX sync_versions_item ON sync_versions (item) WHERE item IS NOT NULL;
        CREATE TABLE sync_pending (
            number INTEGER PRIMARY KEY, id BLOB NOT NULL, name BLOB NOT NULL, lane INTEGER NOT NULL, is_deletion INTEGER NOT NULL,
            replaced BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX sync_pending_id ON sync_pending (id);
        CREATE INDEX sync_pending_name ON sync_pending (name);
        CREATE INDEX sync_pending_lane ON sync_pending (lane);
        CREATE TABLE sync_awaited (
            log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL, id BLOB NOT NULL, PRIMARY KEY (log, batch, hash, id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sync_awaited_id ON sync_awaited (id);
        CREATE TABLE sync_permitted (log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (log, batch, hash))
            STRICT, WITHOUT ROWID;
        CREATE TABLE sync_batches (
            log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL, rest BLOB NOT NULL, device BLOB NOT NULL,
            versions INTEGER NOT NULL, PRIMARY KEY (log, batch, hash)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE sync_marks (
            log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL, rest BLOB NOT NULL, device BLOB NOT NULL,
            previous BLOB NOT NULL, signature BLOB NOT NULL, report INTEGER, PRIMARY KEY (log, batch, hash)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sync_marks_report ON sync_marks (device, report) WHERE report IS NOT NULL;
        CREATE TABLE sync_outgoing (number INTEGER PRIMARY KEY, name TEXT NOT NULL, bytes BLOB NOT NULL) STRICT;
        CREATE UNIQUE INDEX sync_outgoing_name ON sync_outgoing (name);
        CREATE TABLE sync_statements (hash BLOB PRIMARY KEY, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE sync_copies (
            number INTEGER PRIMARY KEY, version BLOB NOT NULL, log INTEGER NOT NULL, batch INTEGER NOT NULL, hash BLOB NOT NULL,
            seconds REAL NOT NULL, \(StoreSchema.rowColumns)
        ) STRICT;
        CREATE UNIQUE INDEX sync_copies_reference ON sync_copies (version, log, batch, hash);
        """

    static let tables = [
        "sync_changes", "sync_settings", "sync_logs", "sync_versions", "sync_pending", "sync_awaited", "sync_permitted", "sync_batches",
        "sync_marks", "sync_outgoing", "sync_statements", "sync_copies",
    ]

    /// The name of the setting that is present if records of changes may have been lost.
    static let lackOfRecords = "store.lackOfRecords"
    static let noteOfLackOfRecords = "INSERT OR REPLACE INTO sync_settings (name, value) VALUES ('\(lackOfRecords)', x'01')"

    /// Makes a store of format 2 one of format 3.
    static let upgrade = "\(statements) PRAGMA user_version = \(StoreSchema.synchronizingFormat)"

    /// Removes the values of items, which are sealed under the keys of the keychain, and what people have named.
    static let erasure = "DELETE FROM sync_copies; DELETE FROM sync_settings"

    /// Makes a store of format 3 one of format 2.
    static let downgrade =
        tables.map { "DROP TABLE \($0); " }.joined() + "PRAGMA user_version = \(StoreSchema.formatOfNewStores)"
}

/// The statements on the tables of `SyncSchema`.
enum SyncStatement: Int, CaseIterable {
    case recordChange, recordedWrites, recordedDeletions, eraseChange, recordUnknownRows
    case recordedChangeCount, pendingVersionCount, shownVersionCount, hiddenVersionNames
    case setting, setSetting, removeSetting
    case logNumber, insertLog, logs
    case versionsByName, versionsByID, versionByItem, versionsFromID, hasVersion
    case insertVersion, updateVersion, updateUnindexedColumns, removeVersion
    case pendingInLane, pendingByID, pendingByName, insertPending, removePending
    case hasAwaited, awaitedFromID, insertAwaited, removeAwaited
    case hasPermitted, insertPermitted, removePermitted
    case hasBatch, hasBatchWithNumber, batchesOfLog, insertBatch
    case marksOfLog, markOfOrigin, marksToReport, insertMark, noteReported, removeMark
    case outgoingNames, outgoingBytes, insertOutgoing, removeOutgoing
    case statements, insertStatement
    case copy, hasCopy, insertCopy, copyRow, removeCopy, renameCopy, replaceCopy
    case countCopiesUnderPasscodeKeysBelow, nextCopyUnderPasscodeKeysBelow, classKeysOfCopies

    var sql: String {
        switch self {
        // An unchanged record is not written again, so only the first change of an item after a round of synchronization costs a page.
        case .recordChange:
            // As `RecordedChange.Kind.combined`, without a write if the record stays.
            """
            INSERT INTO sync_changes (item, kind) VALUES (?1, ?2) ON CONFLICT (item)
            DO UPDATE SET kind = CASE ?2 WHEN 1 THEN 3 ELSE ?2 END WHERE kind <> ?2 AND NOT (kind = 3 AND ?2 = 1)
            """
        case .recordedWrites: "SELECT item FROM sync_changes WHERE kind = ?1 ORDER BY item LIMIT ?2"
        // The second term lets SQLite use the index.
        case .recordedDeletions: "SELECT item FROM sync_changes WHERE kind = ?1 AND kind > 1 ORDER BY item LIMIT ?2"
        case .eraseChange: "DELETE FROM sync_changes WHERE item = ?1"
        case .recordUnknownRows:
            "INSERT INTO sync_changes (item, kind) SELECT id, 1"
                + " FROM items WHERE is_synchronizable <> 0 AND is_tombstone = 0 AND accessibility IN (\(Self.sharedClasses)) AND NOT EXISTS"
                + " (SELECT 1 FROM sync_versions WHERE sync_versions.item = items.id AND sync_versions.id = items.revision)"
                + " ON CONFLICT (item) DO NOTHING"
        case .recordedChangeCount: "SELECT count(*) FROM sync_changes"
        case .pendingVersionCount: "SELECT count(*) FROM sync_pending"
        case .shownVersionCount: "SELECT count(*) FROM sync_versions INDEXED BY sync_versions_item WHERE item IS NOT NULL"
        // In the order of the table: each version would be on another page in the order of an index.
        case .hiddenVersionNames: "SELECT name FROM sync_versions NOT INDEXED WHERE item IS NULL"
        case .setting: "SELECT value FROM sync_settings WHERE name = ?1"
        case .setSetting: "INSERT OR REPLACE INTO sync_settings (name, value) VALUES (?1, ?2)"
        case .removeSetting: "DELETE FROM sync_settings WHERE name = ?1"
        case .logNumber: "SELECT number FROM sync_logs WHERE log = ?1"
        case .insertLog: "INSERT INTO sync_logs (log) VALUES (?1)"
        case .logs:
            "SELECT log FROM sync_logs WHERE EXISTS (SELECT 1 FROM sync_batches WHERE sync_batches.log = sync_logs.number)"
                + " OR EXISTS (SELECT 1 FROM sync_marks WHERE sync_marks.log = sync_logs.number) ORDER BY log"
        case .versionsByName: Self.versions(where: "v.name = ?1")
        case .versionsByID: Self.versions(where: "v.id = ?1")
        case .versionByItem: Self.versions(where: "v.item = ?1")
        case .versionsFromID: Self.versions(where: "v.id >= ?1")
        case .hasVersion: "SELECT number, name, item FROM sync_versions WHERE id = ?1 AND log = ?2 AND batch = ?3 AND hash = ?4"
        case .insertVersion:
            "INSERT INTO sync_versions (id, log, batch, hash, name, lane, date, digest, item)"
                + " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        case .updateVersion:
            "UPDATE sync_versions SET id = ?1, log = ?2, batch = ?3, hash = ?4, name = ?5, lane = ?6, date = ?7, digest = ?8, item = ?9"
                + " WHERE number = ?10"
        // SQLite writes the indexes of all columns that a statement sets, also if they have the same values.
        case .updateUnindexedColumns:
            "UPDATE sync_versions SET log = ?2, batch = ?3, hash = ?4, lane = ?6, date = ?7, digest = ?8 WHERE number = ?10"
        case .removeVersion: "DELETE FROM sync_versions WHERE number = ?1"
        case .pendingInLane: Self.pending(where: "lane = ?1", limit: "LIMIT ?2")
        case .pendingByID: Self.pending(where: "id = ?1")
        case .pendingByName: Self.pending(where: "name = ?1")
        case .insertPending: "INSERT INTO sync_pending (id, name, lane, is_deletion, replaced) VALUES (?1, ?2, ?3, ?4, ?5)"
        case .removePending: "DELETE FROM sync_pending WHERE id = ?1"
        case .hasAwaited: "SELECT 1 FROM sync_awaited WHERE id = ?1 AND log = ?2 AND batch = ?3 AND hash = ?4"
        case .awaitedFromID:
            "SELECT a.id, l.log, a.batch, a.hash FROM sync_awaited a LEFT JOIN sync_logs l ON l.number = a.log WHERE a.id >= ?1"
                + " ORDER BY a.id, l.log, a.batch < 0, a.batch, a.hash"
        case .insertAwaited: "INSERT OR IGNORE INTO sync_awaited (id, log, batch, hash) VALUES (?1, ?2, ?3, ?4)"
        case .removeAwaited: "DELETE FROM sync_awaited WHERE \(Self.originCondition)"
        case .hasPermitted: "SELECT 1 FROM sync_permitted WHERE \(Self.originCondition)"
        case .insertPermitted: "INSERT OR IGNORE INTO sync_permitted (log, batch, hash) VALUES (?1, ?2, ?3)"
        case .removePermitted: "DELETE FROM sync_permitted WHERE \(Self.originCondition)"
        case .hasBatch: "SELECT 1 FROM sync_batches WHERE \(Self.originCondition)"
        case .hasBatchWithNumber: "SELECT 1 FROM sync_batches WHERE log = ?1 AND batch = ?2"
        case .batchesOfLog: "SELECT batch, hash, rest, device, versions FROM sync_batches WHERE log = ?1 ORDER BY batch < 0, batch, hash"
        case .insertBatch:
            "INSERT OR IGNORE INTO sync_batches (log, batch, hash, rest, device, versions) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        case .marksOfLog:
            "SELECT batch, hash, rest, device, previous, signature FROM sync_marks WHERE log = ?1 ORDER BY batch < 0, batch, hash"
        case .markOfOrigin:
            "SELECT batch, hash, rest, device, previous, signature FROM sync_marks WHERE \(Self.originCondition)"
        case .insertMark:
            "INSERT OR REPLACE INTO sync_marks (log, batch, hash, rest, device, previous, signature, report)"
                + " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, CASE ?8 WHEN 1 THEN"
                + " (SELECT coalesce(max(report), 0) + 1 FROM sync_marks WHERE device = ?5 AND report IS NOT NULL) END)"
        case .marksToReport:
            "SELECT m.batch, m.hash, m.rest, m.device, m.previous, m.signature, l.log FROM sync_marks m JOIN sync_logs l ON l.number = m.log"
                + " WHERE m.device = ?1 AND m.report IS NOT NULL ORDER BY m.report LIMIT ?2"
        case .noteReported: "UPDATE sync_marks SET report = NULL WHERE \(Self.originCondition)"
        case .removeMark: "DELETE FROM sync_marks WHERE \(Self.originCondition)"
        // Every object has a page of the table to itself, and the index has the numbers too.
        case .outgoingNames: "SELECT name FROM sync_outgoing INDEXED BY sync_outgoing_name ORDER BY number"
        case .outgoingBytes: "SELECT bytes FROM sync_outgoing WHERE name = ?1"
        case .insertOutgoing: "INSERT OR IGNORE INTO sync_outgoing (name, bytes) VALUES (?1, ?2)"
        case .removeOutgoing: "DELETE FROM sync_outgoing WHERE name = ?1"
        case .statements: "SELECT hash, bytes FROM sync_statements ORDER BY hash"
        case .insertStatement: "INSERT OR IGNORE INTO sync_statements (hash, bytes) VALUES (?1, ?2)"
        case .copy: "\(Self.copies) WHERE \(Self.copyCondition)"
        case .hasCopy: "SELECT 1 FROM sync_copies WHERE \(Self.copyCondition)"
        case .insertCopy:
            "INSERT INTO sync_copies (number, \(RowColumn.list(withSecret: true)), version, log, batch, hash, seconds)"
                + " VALUES (\(Self.nextCopyNumber), \(RowColumn.parameters), \(CopyParameter.list))"
        case .copyRow:
            "INSERT INTO sync_copies (number, \(RowColumn.list(withSecret: true)), version, log, batch, hash, seconds)"
                + " SELECT \(Self.nextCopyNumber), \(RowColumn.list(withSecret: true)), \(CopyParameter.list) FROM items"
                + " WHERE number = ?\(RowColumn.numberParameter)"
        case .removeCopy: "DELETE FROM sync_copies WHERE \(Self.copyCondition)"
        case .renameCopy:
            "UPDATE sync_copies SET version = ?5, log = ?6, batch = ?7, hash = ?8 WHERE \(Self.copyCondition)"
        case .replaceCopy:
            "UPDATE sync_copies SET \(RowColumn.assignments { _ in true }) WHERE number = ?\(RowColumn.numberParameter)"
        case .countCopiesUnderPasscodeKeysBelow: "SELECT count(*) FROM sync_copies WHERE \(StoreStatement.passcodeKeyCondition)"
        case .nextCopyUnderPasscodeKeysBelow:
            "\(Self.copies) WHERE \(StoreStatement.passcodeKeyCondition) AND number > ?2 ORDER BY number LIMIT 1"
        case .classKeysOfCopies: "SELECT DISTINCT accessibility, class_key_generation FROM sync_copies"
        }
    }

    /// The codes of the classes that may leave the device.
    private static let sharedClasses =
        ItemAccessibility.allCases.filter { Lane($0) != nil }.map { "\($0.code)" }.joined(separator: ", ")
    private static let originCondition = "log = ?1 AND batch = ?2 AND hash = ?3"
    private static let copyCondition = "version = ?1 AND log = ?2 AND batch = ?3 AND hash = ?4"
    private static let copies = "SELECT number, \(RowColumn.list(withSecret: true)) FROM sync_copies"
    private static let nextCopyNumber = "(SELECT coalesce(max(number) + 1, \(SyncSchema.firstCopyNumber)) FROM sync_copies)"

    /// In ascending order of reference: NULL, the log of a version that is in no batch yet, is first, and numbers above 2^63 are stored as
    /// negative ones.
    private static func versions(where condition: String) -> String {
        "SELECT v.id, l.log, v.batch, v.hash, v.name, v.lane, v.date, v.digest, v.item FROM sync_versions v"
            + " LEFT JOIN sync_logs l ON l.number = v.log WHERE \(condition) ORDER BY v.id, l.log, v.batch < 0, v.batch, v.hash"
    }

    private static func pending(where condition: String, limit: String = "") -> String {
        "SELECT id, name, lane, is_deletion, replaced FROM sync_pending WHERE \(condition) ORDER BY number \(limit)"
    }
}

/// The parameters of a statement that inserts a conflict copy, after those of the row.
enum CopyParameter {
    static let version = RowColumn.numberParameter + 1
    static let log = version + 1
    static let batch = version + 2
    static let hash = version + 3
    static let seconds = version + 4

    static var list: String { (version...seconds).map { "?\($0)" }.joined(separator: ", ") }
}
