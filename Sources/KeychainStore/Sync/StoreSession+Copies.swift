// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Conflict copies: rows that no search of a program finds.
///
/// They are sealed under the class keys like rows of items, and rewrapped with them. The state of the store does not count them.
extension StoreSession {
    func copy(of reference: VersionReference) throws(KeychainFailure) -> SealedRow? {
        guard let statement = try statement(.copy, of: reference) else { return nil }
        defer { statement.reset() }
        return try statement.step() ? statement.row(includingSecret: true, foundBy: nil) : nil
    }

    func insertCopy(_ row: SealedRow, of reference: VersionReference, at seconds: Double) throws(KeychainFailure) {
        let statement = try statementInserting(.insertCopy, reference, seconds)
        try statement.bindAndRun(row, includingIndexed: true)
    }

    func copyRow(number: Int64, toCopyOf reference: VersionReference, at seconds: Double) throws(KeychainFailure) {
        let statement = try statementInserting(.copyRow, reference, seconds)
        statement.bind(number, at: RowColumn.numberParameter)
        try statement.run()
    }

    func removeCopy(of reference: VersionReference) throws(KeychainFailure) {
        try statement(.removeCopy, of: reference)?.run()
    }

    func renameCopy(_ reference: VersionReference, to other: VersionReference) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: other.origin)
        guard let statement = try statement(.renameCopy, of: reference) else { return }
        statement.bind(other.id, at: 5)
        statement.bind(other.origin, log: log, at: 6)
        try statement.run()
    }

    /// Replaces the row of a conflict copy, which was resealed.
    func replaceCopy(number: Int64, with row: SealedRow) throws(KeychainFailure) {
        let statement = try connection.statement(.replaceCopy)
        statement.bind(number, at: RowColumn.numberParameter)
        try statement.bindAndRun(row, includingIndexed: true)
    }

    // MARK: Copies by class key

    func copyCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        let statement = try connection.statement(.countCopiesUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        return try statement.step() ? Int(statement.integer(at: 0)) : 0
    }

    func nextCopy(underPasscodeKeysBelow generation: UInt32, after number: Int64) throws(KeychainFailure) -> SealedRow? {
        let statement = try connection.statement(.nextCopyUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        statement.bind(number, at: 2)
        return try statement.step() ? statement.row(includingSecret: true, foundBy: nil) : nil
    }

    func classKeysOfCopies() throws(KeychainFailure) -> Set<ClassKeyID> {
        try classKeys(listedBy: try connection.statement(.classKeysOfCopies))
    }

    // MARK: Statements

    /// Returns nil if the ledger does not know the log, so that there is no such copy.
    private func statement(_ name: SyncStatement, of reference: VersionReference) throws(KeychainFailure) -> SQLiteStatement? {
        guard let log = try logNumber(of: reference.origin) else { return nil }
        let statement = try connection.statement(name)
        statement.bind(reference.id, at: 1)
        statement.bind(reference.origin, log: log, at: 2)
        return statement
    }

    private func statementInserting(
        _ name: SyncStatement, _ reference: VersionReference, _ seconds: Double
    ) throws(KeychainFailure) -> SQLiteStatement {
        let log = try insertedLogNumber(of: reference.origin)
        guard try statement(.hasCopy, of: reference)?.hasRow() != true else {
            throw KeychainFailure(.duplicateItem, "the version has a conflict copy already")
        }
        let statement = try connection.statement(name)
        statement.bind(reference.id, at: CopyParameter.version)
        statement.bind(reference.origin, log: log, at: CopyParameter.log)
        statement.bind(seconds, at: CopyParameter.seconds)
        return statement
    }
}
