// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The tables of a store and the numbers in its file header.
///
/// Part of the on-disk format.
enum StoreSchema {
    /// "KCHN", SQLite's application ID in the header of the file.
    static let applicationID: Int64 = 0x4B43_484E
    /// A format without page checksums, from before the first release.
    ///
    /// It is refused by name.
    static let unreleasedFormat: Int64 = 1
    /// Pages have checksums in this format and all later ones.
    static let firstFormatWithPageChecksums: Int64 = 2
    static let formatOfNewStores: Int64 = 2
    /// The format of a store while synchronization is on: the tables of `SyncSchema` are added, and writes record which items they change.
    static let synchronizingFormat: Int64 = 3
    /// A store of a later format is refused.
    static let newestKnownFormat: Int64 = 3
    static let pageByteCount = 4096
    /// The bytes at the end of each page that hold its checksum.
    static let reservedByteCountPerPage: Int32 = 16
    /// The size of a row with a value of 64 MiB, padded and sealed, and its attributes.
    static let largestRowByteCount: Int32 = 80 * 1024 * 1024

    /// The columns of a stored row, without its number.
    ///
    /// The secret is last, so a search skips rows without reading its overflow pages.
    static let rowColumns = """
        class INTEGER NOT NULL,
        id BLOB NOT NULL CHECK (length(id) = 16),
        format_version INTEGER NOT NULL,
        accessibility INTEGER NOT NULL,
        class_key_generation INTEGER NOT NULL,
        is_synchronizable INTEGER NOT NULL,
        is_tombstone INTEGER NOT NULL,
        service_digest BLOB NOT NULL CHECK (length(service_digest) = 16),
        account_digest BLOB NOT NULL CHECK (length(account_digest) = 16),
        remaining_key_digest BLOB NOT NULL CHECK (length(remaining_key_digest) = 16),
        access_group_digest BLOB NOT NULL CHECK (length(access_group_digest) = 16),
        revision BLOB NOT NULL CHECK (length(revision) = 16),
        attribute_digests BLOB NOT NULL,
        constraints BLOB,
        wrapped_item_key BLOB NOT NULL,
        tag BLOB NOT NULL,
        sealed_attributes BLOB NOT NULL,
        sealed_secret BLOB NOT NULL
        """

    /// `item_attributes` is only an index: the `attribute_digests` of each row are authoritative.
    ///
    /// The primary key begins with the account, so that it also serves searches by account. Programs have few services and many accounts: new items
    /// of a service are neighbors in an index by service, and would each change a page of their own in one by account.
    ///
    /// `quarantine` has no constraints, because its rows are damaged. The two copies of the keybag have a table each, so that they never
    /// share a page.
    static let statements = """
        CREATE TABLE items (number INTEGER PRIMARY KEY, \(rowColumns)) STRICT;
        CREATE UNIQUE INDEX items_primary_key ON items (account_digest, service_digest, remaining_key_digest);
        CREATE INDEX items_service ON items (service_digest);
        CREATE UNIQUE INDEX items_id ON items (id);
        CREATE TABLE item_attributes (
            attribute INTEGER NOT NULL, digest BLOB NOT NULL, item INTEGER NOT NULL,
            PRIMARY KEY (attribute, digest, item)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE quarantine (number INTEGER PRIMARY KEY, seconds REAL NOT NULL, \(RowColumn.list(withSecret: true)));
        CREATE TABLE keybag (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;
        CREATE TABLE keybag_copy (number INTEGER PRIMARY KEY CHECK (number = 1), bytes BLOB NOT NULL) STRICT;
        CREATE TABLE meta (
            number INTEGER PRIMARY KEY CHECK (number = 1),
            store_id BLOB NOT NULL CHECK (length(store_id) = 16),
            keybag_generation INTEGER NOT NULL,
            scrub_pending INTEGER NOT NULL,
            lock_epoch INTEGER NOT NULL,
            state BLOB
        ) STRICT;
        PRAGMA application_id = \(applicationID);
        PRAGMA user_version = \(formatOfNewStores);
        """

    /// Returns the rows of `sqlite_schema` in a store of this format: type, name, table, and definition, separated by NUL.
    static func objects(ofFormat format: Int64) -> Set<String> { format >= synchronizingFormat ? synchronizingObjects : plainObjects }

    private static let plainObjects = objects(definedBy: statements)
    private static let synchronizingObjects = plainObjects.union(objects(definedBy: SyncSchema.statements))

    /// SQLite keeps each definition as it was written, with a single space after CREATE TABLE.
    private static func objects(definedBy statements: String) -> Set<String> {
        var objects: Set<String> = []
        for statement in statements.split(separator: ";") {
            let definition = statement.drop { $0.isWhitespace }
            let words = definition.split(maxSplits: 6) { $0 == " " }
            if definition.hasPrefix("CREATE TABLE ") {
                let name = words[2].prefix { $0 != "(" }
                objects.insert("table\0\(name)\0\(name)\0\(definition)")
            } else if definition.hasPrefix("CREATE ") {
                let position = words[1] == "UNIQUE" ? 3 : 2
                objects.insert("index\0\(words[position])\0\(words[position + 2])\0\(definition)")
            }
        }
        return objects
    }

    /// What `ANALYZE` adds: statistics for SQLite's choice of an index.
    static let statistics: Set<String> = [
        "table\0sqlite_stat1\0sqlite_stat1\0CREATE TABLE sqlite_stat1(tbl,idx,stat)",
        "table\0sqlite_stat4\0sqlite_stat4\0CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    ]
}

/// The statements that are prepared once and run many times on a connection.
enum StoreStatement: Int, CaseIterable {
    case begin, beginImmediate, commit, rollback
    case savepoint, releaseSavepoint, rollbackToSavepoint
    case formatVersion, keybagGeneration, keybag, keybagCopy
    case pageCount, freePageCount
    // Searches with few results.
    case rowsByID, rowsByIDWithSecret
    case rowsByServiceAndAccount, rowsByServiceAndAccountWithSecret
    case rowsByPrimaryKey, rowsByPrimaryKeyWithSecret
    case rowByNumber, rowByNumberWithSecret
    // Searches with many results.
    case listByService, listByServiceWithSecret, listByAccount, listByAccountWithSecret, listByAttribute, listByAttributeWithSecret
    case listByClass, listByClassWithSecret, listAll, listAllWithSecret, numbersByClass, allNumbers
    // Searches of indices alone.
    case indexedNumbersByID, indexedNumbersByKey, indexedNumbersByService, indexedNumbersByAccount, indexedNumbersByAttribute
    case allIndexedNumbers
    case itemCount, quarantinedRows
    case insert, replaceContent, replaceAll, remove, indexedColumns, recordedColumns
    case insertAttribute, removeAttribute
    case quarantine, trimQuarantine, purgeQuarantine
    case insertKeybag, insertKeybagCopy, insertMeta, scrubPending, clearScrubPending
    case replaceKeybag, replaceKeybagCopy, markKeybagReplaced
    case lockEpoch, setLockEpoch
    case state, setState, allTags
    case countUnderPasscodeKeysBelow, nextUnderPasscodeKeysBelow, classKeysInUse

    var sql: String {
        switch self {
        case .begin: "BEGIN"
        case .beginImmediate: "BEGIN IMMEDIATE"
        case .commit: "COMMIT"
        case .rollback: "ROLLBACK"
        case .savepoint: "SAVEPOINT request"
        case .releaseSavepoint: "RELEASE request"
        case .rollbackToSavepoint: "ROLLBACK TO request"
        case .formatVersion: "PRAGMA user_version"
        case .pageCount: "PRAGMA page_count"
        case .freePageCount: "PRAGMA freelist_count"
        case .keybagGeneration: "SELECT keybag_generation FROM meta WHERE number = 1"
        case .keybag: "SELECT bytes FROM keybag WHERE number = 1"
        case .keybagCopy: "SELECT bytes FROM keybag_copy WHERE number = 1"
        case .rowsByID: Self.selectiveRows(where: "id = ?1", known: [], withSecret: false)
        case .rowsByIDWithSecret: Self.selectiveRows(where: "id = ?1", known: [], withSecret: true)
        case .rowsByServiceAndAccount: Self.selectiveRows(where: Self.leadingKeyCondition, known: Self.leadingKey, withSecret: false)
        case .rowsByServiceAndAccountWithSecret:
            Self.selectiveRows(where: Self.leadingKeyCondition, known: Self.leadingKey, withSecret: true)
        case .rowsByPrimaryKey: Self.selectiveRows(where: Self.primaryKeyCondition, known: Self.leadingKey, withSecret: false)
        case .rowsByPrimaryKeyWithSecret: Self.selectiveRows(where: Self.primaryKeyCondition, known: Self.leadingKey, withSecret: true)
        case .rowByNumber: Self.select(withSecret: false) + " WHERE number = ?1"
        case .rowByNumberWithSecret: Self.select(withSecret: true) + " WHERE number = ?1"
        case .listByService: Self.list(numberedBy: .indexedNumbersByService, withSecret: false)
        case .listByServiceWithSecret: Self.list(numberedBy: .indexedNumbersByService, withSecret: true)
        case .listByAccount: Self.list(numberedBy: .indexedNumbersByAccount, withSecret: false)
        case .listByAccountWithSecret: Self.list(numberedBy: .indexedNumbersByAccount, withSecret: true)
        case .listByAttribute: Self.list(numberedBy: .indexedNumbersByAttribute, withSecret: false)
        case .listByAttributeWithSecret: Self.list(numberedBy: .indexedNumbersByAttribute, withSecret: true)
        case .listByClass: Self.list(numberedBy: .numbersByClass, withSecret: false)
        case .listByClassWithSecret: Self.list(numberedBy: .numbersByClass, withSecret: true)
        case .listAll: Self.list(numberedBy: .allNumbers, withSecret: false)
        case .listAllWithSecret: Self.list(numberedBy: .allNumbers, withSecret: true)
        case .numbersByClass: "SELECT number FROM items NOT INDEXED WHERE class = ?1"
        // With DISTINCT, SQLite does not use the table itself in place of a list of its numbers.
        case .allNumbers: "SELECT DISTINCT number FROM items NOT INDEXED"
        case .indexedNumbersByID: "SELECT number FROM items INDEXED BY items_id WHERE id = ?1"
        case .indexedNumbersByKey: "SELECT number FROM items INDEXED BY items_primary_key WHERE \(Self.leadingKeyCondition)"
        case .indexedNumbersByService: "SELECT number FROM items INDEXED BY items_service WHERE service_digest = ?1"
        case .indexedNumbersByAccount: "SELECT number FROM items INDEXED BY items_primary_key WHERE account_digest = ?1"
        case .indexedNumbersByAttribute: "SELECT item FROM item_attributes WHERE attribute = ?1 AND digest = ?2"
        case .allIndexedNumbers: "SELECT number FROM items INDEXED BY items_id"
        case .itemCount: "SELECT count(*) FROM items WHERE is_tombstone = 0"
        case .quarantinedRows: "SELECT NULL, \(RowColumn.list(withSecret: true)), seconds FROM quarantine ORDER BY number"
        case .insert: "INSERT INTO items (\(RowColumn.list(withSecret: true))) VALUES (\(RowColumn.parameters))"
        case .replaceContent:
            "UPDATE items SET \(RowColumn.assignments { !$0.isIndexed }) WHERE number = ?\(RowColumn.numberParameter)"
        case .replaceAll:
            "UPDATE items SET \(RowColumn.assignments { _ in true }) WHERE number = ?\(RowColumn.numberParameter)"
        case .remove: "DELETE FROM items WHERE number = ?1"
        case .indexedColumns: "SELECT \(Self.valuesBeforeWrite) FROM items WHERE number = ?1"
        case .recordedColumns:
            "SELECT \(Self.valuesBeforeWrite), is_synchronizable, is_tombstone, accessibility, revision FROM items WHERE number = ?1"
        case .insertAttribute: "INSERT OR IGNORE INTO item_attributes (attribute, digest, item) VALUES (?1, ?2, ?3)"
        case .removeAttribute: "DELETE FROM item_attributes WHERE attribute = ?1 AND digest = ?2 AND item = ?3"
        case .quarantine:
            "INSERT INTO quarantine (seconds, \(RowColumn.list(withSecret: true))) "
                + "SELECT ?2, \(RowColumn.list(withSecret: true)) FROM items WHERE number = ?1"
        case .trimQuarantine:
            "DELETE FROM quarantine WHERE number NOT IN (SELECT number FROM quarantine ORDER BY number DESC LIMIT ?1)"
        case .purgeQuarantine: "DELETE FROM quarantine"
        case .insertKeybag: "INSERT INTO keybag (number, bytes) VALUES (1, ?1)"
        case .insertKeybagCopy: "INSERT INTO keybag_copy (number, bytes) VALUES (1, ?1)"
        case .insertMeta:
            "INSERT INTO meta (number, store_id, keybag_generation, scrub_pending, lock_epoch, state) VALUES (1, ?1, ?2, 0, 0, ?3)"
        case .scrubPending: "SELECT scrub_pending FROM meta WHERE number = 1"
        case .clearScrubPending: "UPDATE meta SET scrub_pending = 0 WHERE number = 1 AND scrub_pending = ?1"
        case .replaceKeybag: "INSERT OR REPLACE INTO keybag (number, bytes) VALUES (1, ?1)"
        case .replaceKeybagCopy: "INSERT OR REPLACE INTO keybag_copy (number, bytes) VALUES (1, ?1)"
        case .markKeybagReplaced: "UPDATE meta SET keybag_generation = ?1, scrub_pending = ?2 WHERE number = 1"
        case .lockEpoch: "SELECT lock_epoch FROM meta WHERE number = 1"
        case .setLockEpoch: "UPDATE meta SET lock_epoch = ?1 WHERE number = 1"
        case .state: "SELECT state FROM meta WHERE number = 1"
        case .setState: "UPDATE meta SET state = ?1 WHERE number = 1"
        case .allTags: "SELECT tag FROM items NOT INDEXED"
        case .countUnderPasscodeKeysBelow: "SELECT count(*) FROM items NOT INDEXED WHERE \(Self.passcodeKeyCondition)"
        case .nextUnderPasscodeKeysBelow:
            Self.select(withSecret: true) + " NOT INDEXED WHERE \(Self.passcodeKeyCondition) AND number > ?2 ORDER BY number LIMIT 1"
        case .classKeysInUse:
            "SELECT accessibility, class_key_generation FROM items UNION SELECT accessibility, class_key_generation FROM quarantine"
        }
    }

    private static let valuesBeforeWrite = "id, service_digest, account_digest, remaining_key_digest, attribute_digests, tag"

    private static let leadingKey: Set<RowColumn> = [.serviceDigest, .accountDigest]
    private static let leadingKeyCondition = "service_digest = ?1 AND account_digest = ?2"
    private static let primaryKeyCondition = leadingKeyCondition + " AND remaining_key_digest = ?3"

    static let passcodeKeyCondition: String = {
        let codes = ItemAccessibility.allCases.filter(\.isPasscodeProtected).map { String($0.code) }
        return "accessibility IN (\(codes.joined(separator: ", "))) AND class_key_generation < ?1"
    }()

    private static func select(known: Set<RowColumn> = [], withSecret: Bool) -> String {
        "SELECT number, \(RowColumn.list(known: known, withSecret: withSecret)) FROM items"
    }

    /// A search by an index that returns few rows.
    ///
    /// `known` columns have the values of the search key. They are not selected, because SQLite would copy each blob.
    private static func selectiveRows(where condition: String, known: Set<RowColumn>, withSecret: Bool) -> String {
        select(known: known, withSecret: withSecret) + " WHERE " + condition
    }

    /// A listing of the rows whose numbers another statement returns.
    ///
    /// SQLite keeps the numbers in a tree, each of them once, and reads the rows in its order, so that no row is sorted. A row of a damaged
    /// table is not found twice.
    private static func list(numberedBy numbers: StoreStatement, withSecret: Bool) -> String {
        select(withSecret: withSecret) + " NOT INDEXED WHERE number IN (\(numbers.sql)) ORDER BY number"
    }
}
