// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Every statement that runs more than once on a connection.
enum StoreStatement: Int, CaseIterable {
    case begin, beginImmediate, commit, rollback
    case savepoint, releaseSavepoint, rollbackToSavepoint
    case formatVersion, keybagGeneration, keybag, keybagCopy
    // Few rows at the most, ended by a row of NULLs.
    case rowsByID, rowsByIDWithSecret
    case rowsByServiceAndAccount, rowsByServiceAndAccountWithSecret
    case rowsByPrimaryKey, rowsByPrimaryKeyWithSecret
    case rowByNumber, rowByNumberWithSecret
    case numbersByService, numbersByAccount, numbersByAttribute, numbersByClass, allNumbers
    case indexedNumbersByID, indexedNumbersByKey, allIndexedNumbers
    case itemCount, quarantinedRows
    case insert, replaceContent, replaceAll, remove, indexedColumns
    case insertAttribute, removeAttribute
    case quarantine, trimQuarantine, purgeQuarantine
    case insertKeybag, insertKeybagCopy, insertMeta, scrubPending, clearScrubPending
    case replaceKeybag, replaceKeybagCopy, markKeybagReplaced
    case lockEpoch, setLockEpoch
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
        case .keybagGeneration: "SELECT keybag_generation FROM meta WHERE number = 1"
        case .keybag: "SELECT bytes FROM keybag WHERE number = 1"
        case .keybagCopy: "SELECT bytes FROM keybag_copy WHERE number = 1"
        case .rowsByID: Self.fewRows(where: "id = ?1", known: [], withSecret: false)
        case .rowsByIDWithSecret: Self.fewRows(where: "id = ?1", known: [], withSecret: true)
        case .rowsByServiceAndAccount: Self.fewRows(where: Self.leadingKeyCondition, known: Self.leadingKey, withSecret: false)
        case .rowsByServiceAndAccountWithSecret: Self.fewRows(where: Self.leadingKeyCondition, known: Self.leadingKey, withSecret: true)
        case .rowsByPrimaryKey: Self.fewRows(where: Self.primaryKeyCondition, known: Self.leadingKey, withSecret: false)
        case .rowsByPrimaryKeyWithSecret: Self.fewRows(where: Self.primaryKeyCondition, known: Self.leadingKey, withSecret: true)
        case .rowByNumber: Self.select(withSecret: false) + " WHERE number = ?1"
        case .rowByNumberWithSecret: Self.select(withSecret: true) + " WHERE number = ?1"
        case .numbersByService: "SELECT number FROM items WHERE service_digest = ?1"
        case .numbersByAccount: "SELECT number FROM items WHERE account_digest = ?1 ORDER BY number"
        case .numbersByAttribute: "SELECT item FROM item_attributes WHERE attribute = ?1 AND digest = ?2 ORDER BY item"
        case .numbersByClass: "SELECT number FROM items NOT INDEXED WHERE class = ?1 ORDER BY number"
        case .allNumbers: "SELECT number FROM items NOT INDEXED ORDER BY number"
        case .indexedNumbersByID: "SELECT number FROM items INDEXED BY items_id WHERE id = ?1"
        case .indexedNumbersByKey: "SELECT number FROM items INDEXED BY items_primary_key WHERE \(Self.leadingKeyCondition)"
        case .allIndexedNumbers: "SELECT number FROM items INDEXED BY items_id"
        case .itemCount: "SELECT count(*) FROM items WHERE is_tombstone = 0"
        case .quarantinedRows: "SELECT NULL, \(RowColumn.list(withSecret: true)), seconds FROM quarantine ORDER BY number"
        case .insert: "INSERT INTO items (\(RowColumn.list(withSecret: true))) VALUES (\(RowColumn.parameters))"
        case .replaceContent:
            "UPDATE items SET \(RowColumn.assignments { !$0.isIndexed }) WHERE number = ?\(RowColumn.numberParameter)"
        case .replaceAll:
            "UPDATE items SET \(RowColumn.assignments { _ in true }) WHERE number = ?\(RowColumn.numberParameter)"
        case .remove: "DELETE FROM items WHERE number = ?1"
        case .indexedColumns:
            "SELECT id, service_digest, account_digest, remaining_key_digest, attribute_digests FROM items WHERE number = ?1"
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
        case .insertMeta: "INSERT INTO meta (number, store_id, keybag_generation, scrub_pending, lock_epoch) VALUES (1, ?1, ?2, 0, 0)"
        case .scrubPending: "SELECT scrub_pending FROM meta WHERE number = 1"
        case .clearScrubPending: "UPDATE meta SET scrub_pending = 0 WHERE number = 1 AND scrub_pending = ?1"
        case .replaceKeybag: "INSERT OR REPLACE INTO keybag (number, bytes) VALUES (1, ?1)"
        case .replaceKeybagCopy: "INSERT OR REPLACE INTO keybag_copy (number, bytes) VALUES (1, ?1)"
        case .markKeybagReplaced: "UPDATE meta SET keybag_generation = ?1, scrub_pending = ?2 WHERE number = 1"
        case .lockEpoch: "SELECT lock_epoch FROM meta WHERE number = 1"
        case .setLockEpoch: "UPDATE meta SET lock_epoch = ?1 WHERE number = 1"
        case .countUnderPasscodeKeysBelow: "SELECT count(*) FROM items NOT INDEXED WHERE \(Self.passcodeKeyCondition)"
        case .nextUnderPasscodeKeysBelow:
            Self.select(withSecret: true) + " NOT INDEXED WHERE \(Self.passcodeKeyCondition) AND number > ?2 ORDER BY number LIMIT 1"
        case .classKeysInUse:
            "SELECT accessibility, class_key_generation FROM items UNION SELECT accessibility, class_key_generation FROM quarantine"
        }
    }

    private static let leadingKey: Set<RowColumn> = [.serviceDigest, .accountDigest]
    private static let leadingKeyCondition = "service_digest = ?1 AND account_digest = ?2"
    private static let primaryKeyCondition = leadingKeyCondition + " AND remaining_key_digest = ?3"

    private static let passcodeKeyCondition: String = {
        let codes = Accessibility.allCases.filter(\.isPasscodeProtected).map { String($0.code) }
        return "accessibility IN (\(codes.joined(separator: ", "))) AND class_key_generation < ?1"
    }()

    private static func select(known: Set<RowColumn> = [], withSecret: Bool) -> String {
        "SELECT number, \(RowColumn.list(known: known, withSecret: withSecret)) FROM items"
    }

    /// A search whose last row is made of NULLs: standing on it, the statement still holds its read transaction.
    ///
    /// Columns whose values the search itself names are not asked for: each blob that is handed out costs SQLite a copy.
    private static func fewRows(where condition: String, known: Set<RowColumn>, withSecret: Bool) -> String {
        let nulls = Array(repeating: "NULL", count: RowColumn.count(withSecret: withSecret) + 1).joined(separator: ", ")
        return select(known: known, withSecret: withSecret) + " WHERE " + condition + " UNION ALL SELECT " + nulls
    }
}
