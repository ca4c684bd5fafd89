// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

extension StoreSession: ItemReading {
    @discardableResult
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool {
        switch SearchPlan(query) {
        case .selective(let condition):
            return try forEachRow(condition, matching: query, includingSecrets: includingSecrets, body)
        case .listing(let condition):
            try forEachListedRow(condition, matching: query, includingSecrets: includingSecrets, body)
            return false
        }
    }

    /// Passes the rows of a search with few results to `body`, after the statement has ended.
    private func forEachRow(
        _ condition: SearchPlan.SelectiveCondition, matching query: RowQuery, includingSecrets: Bool,
        _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Bool {
        let found = try selectiveRows(condition, matching: query, includingSecrets: includingSecrets)
        guard let first = found.first else {
            if !found.hasExcludedRow { try requireComparedRows() }
            return found.hasExcludedRow
        }
        guard !found.others.isEmpty else {
            _ = try body(first)
            return found.hasExcludedRow
        }
        for number in (found.others + [first.number].compactMap(\.self)).sorted() {
            guard let row = try row(number, matching: query, includingSecrets: includingSecrets) else { continue }
            guard try body(row) == .proceed else { break }
        }
        return found.hasExcludedRow
    }

    /// Passes the rows of a search that may have many results to `body`, while the statement runs.
    ///
    /// One statement takes half the instructions of one for each row. It lists the numbers first, so a row that `body` changes is not found
    /// again.
    private func forEachListedRow(
        _ condition: SearchPlan.ListingCondition, matching query: RowQuery, includingSecrets: Bool,
        _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try beginReadTransaction()
        let statement = try connection.statement(condition.rows(includingSecrets: includingSecrets))
        guard !statement.isRunning else { throw KeychainFailure(.internal, "a listing was started within another one") }
        defer { statement.reset() }
        statement.bind(condition)
        var isFound = false
        while try statement.step() {
            guard statement.rowMatches(query) else { continue }
            isFound = true
            guard try body(statement.row(includingSecret: includingSecrets, foundBy: nil)) == .proceed else { break }
        }
        if !isFound { try requireComparedRows() }
    }

    func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> SkippedRows {
        var last: Int64?
        do throws(KeychainFailure) {
            let hasExcludedRow = try forEachRow(matching: query, includingSecrets: includingSecrets) { row throws(KeychainFailure) in
                last = row.number
                return try body(row)
            }
            return SkippedRows(hasExcludedRow: hasExcludedRow)
        } catch {
            // An altered -shm file hides nothing any more once all programs have closed the store.
            guard error.isDamage, error.remedy != .closeElsewhere, health.transactionFailure?.isDamage == true else { throw error }
        }
        let count = try salvage(matching: query, includingSecrets: includingSecrets, after: last, body)
        return SkippedRows(damagedPageRowCount: count, hasExcludedRow: query.searchKey != nil)
    }

    /// Continues a search that a damaged page ended: lists the rows from an index and reads each one separately.
    ///
    /// Rows are passed to `body` in ascending order of their numbers, so the search continues after the last number. Returns how many rows
    /// cannot be read.
    private func salvage(
        matching query: RowQuery, includingSecrets: Bool, after last: Int64?, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Int {
        var damagedPageRowCount = 0
        for number in try indexedNumbers(query).sorted() where number > last ?? .min {
            switch try recover(number, matching: query, includingSecrets: includingSecrets) {
            case .unreadable: damagedPageRowCount += 1
            case .found(nil): continue
            case .found(let row?): guard try body(row) == .proceed else { return damagedPageRowCount }
            }
        }
        return damagedPageRowCount
    }

    private enum RowRecovery {
        case found(SealedRow?)
        case unreadable
    }

    /// Reads the row of that number, without its secret if only the secret is unreadable.
    private func recover(_ number: Int64, matching query: RowQuery, includingSecrets: Bool) throws(KeychainFailure) -> RowRecovery {
        do throws(KeychainFailure) {
            return .found(try row(number, matching: query, includingSecrets: includingSecrets))
        } catch {
            guard error.isDamage else { throw error }
            return includingSecrets ? try recover(number, matching: query, includingSecrets: false) : .unreadable
        }
    }

    /// Returns the numbers of all rows that may match, from indices only: pages of the table may be damaged.
    private func indexedNumbers(_ query: RowQuery) throws(KeychainFailure) -> [Int64] {
        try beginReadTransaction()
        let statement: SQLiteStatement
        switch SearchPlan(query) {
        case .listing(let condition):
            statement = try connection.statement(condition.indexedNumbers)
            statement.bind(condition)
        case .selective(let condition):
            statement = try connection.statement(condition.indexedNumbers)
            if let id = query.id { statement.bind(id, at: 1) }
            if query.id == nil, let service = query.serviceDigest, let account = query.accountDigest {
                statement.bind(service, at: 1)
                statement.bind(account, at: 2)
            }
        }
        defer { statement.reset() }
        var numbers: [Int64] = []
        while try statement.step() { numbers.append(statement.rowNumber) }
        return numbers
    }

    /// Returns the first row that matches, the numbers of the others, which are rare, and whether the search key led to rows that do not
    /// match.
    private func selectiveRows(
        _ condition: SearchPlan.SelectiveCondition, matching query: RowQuery, includingSecrets: Bool
    ) throws(KeychainFailure) -> (first: SealedRow?, others: [Int64], hasExcludedRow: Bool) {
        try beginReadTransaction()
        let statement = try connection.statement(condition.rows(includingSecrets: includingSecrets))
        defer { statement.reset() }
        statement.bindKey(of: query)
        var first: SealedRow?
        var others: [Int64] = []
        var hasExcludedRow = false
        while try statement.step() {
            guard statement.rowMatches(query) else {
                hasExcludedRow = true
                continue
            }
            if first == nil {
                first = statement.row(includingSecret: includingSecrets, foundBy: query)
            } else {
                others.append(statement.rowNumber)
            }
        }
        return (first, others, hasExcludedRow)
    }

    /// Returns the row of that number, if it still exists and matches.
    ///
    /// The statement can be used again when this returns.
    private func row(
        _ number: Int64, matching query: RowQuery, includingSecrets: Bool
    ) throws(KeychainFailure) -> SealedRow? {
        let statement = try connection.statement(includingSecrets ? .rowByNumberWithSecret : .rowByNumber)
        defer { statement.reset() }
        statement.bind(number, at: 1)
        guard try statement.step(), statement.rowMatches(query) else { return nil }
        return statement.row(includingSecret: includingSecrets, foundBy: nil)
    }

    func itemCount() throws(KeychainFailure) -> Int {
        try beginReadTransaction()
        return Int(try singleInteger(.itemCount) ?? 0)
    }

    func keybag() throws(KeychainFailure) -> StoredKeybag {
        try beginReadTransaction()
        let generation = try keybagGeneration()
        var copies: [[UInt8]] = []
        var failure = KeychainFailure(.notAvailable, "neither copy of the store's keybag can be read", subject: .keybag, isDamage: true)
        for name in [StoreStatement.keybag, .keybagCopy] {
            do throws(KeychainFailure) {
                if let copy = try keybagCopy(name) { copies.append(copy) }
            } catch {
                // A disk failure or a timeout is more specific than the damage of a copy.
                if !error.isDamage { failure = error }
            }
        }
        guard !copies.isEmpty else { throw failure }
        return StoredKeybag(generation: generation, copies: copies)
    }

    func keybagGeneration() throws(KeychainFailure) -> UInt64 {
        guard let generation = try singleInteger(.keybagGeneration) else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no keybag generation", subject: .store, isDamage: true)
        }
        return UInt64(bitPattern: generation)
    }

    private func keybagCopy(_ name: StoreStatement) throws(KeychainFailure) -> [UInt8]? {
        let statement = try connection.statement(name)
        defer { statement.reset() }
        return try statement.step() ? statement.bytes(at: 0) : nil
    }

    func singleInteger(_ name: StoreStatement) throws(KeychainFailure) -> Int64? {
        let statement = try connection.statement(name)
        defer { statement.reset() }
        return try statement.step() ? statement.integer(at: 0) : nil
    }

    func quarantinedRows() throws(KeychainFailure) -> [QuarantinedRow] {
        try beginReadTransaction()
        let statement = try connection.statement(.quarantinedRows)
        defer { statement.reset() }
        var rows: [QuarantinedRow] = []
        while try statement.step() {
            rows.append(
                QuarantinedRow(
                    row: statement.row(includingSecret: true, foundBy: nil), seconds: statement.real(at: RowColumn.secondsPosition)))
        }
        return rows
    }
}

// MARK: - Rows by class key

extension StoreSession {
    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        try beginReadTransaction()
        let statement = try connection.statement(.countUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        guard try statement.step() else { return 0 }
        return Int(statement.integer(at: 0)) + (try isSynchronizing() ? try copyCount(underPasscodeKeysBelow: generation) : 0)
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try beginReadTransaction()
        let hasCopies = try isSynchronizing()
        // Each row is a new search after the last number. So the cost is proportional to the rows passed to `body`, and `body` may change
        // the current row.
        var last = number
        while let row = try nextRow(underPasscodeKeysBelow: generation, after: last, hasCopies) {
            last = row.number ?? last
            guard try body(row) == .proceed else { return }
        }
    }

    private func nextRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ hasCopies: Bool
    ) throws(KeychainFailure) -> SealedRow? {
        if number < SyncSchema.firstCopyNumber {
            let statement = try connection.statement(.nextUnderPasscodeKeysBelow)
            defer { statement.reset() }
            statement.bind(Int64(generation), at: 1)
            statement.bind(number, at: 2)
            if try statement.step() { return statement.row(includingSecret: true, foundBy: nil) }
        }
        return hasCopies ? try nextCopy(underPasscodeKeysBelow: generation, after: number) : nil
    }

    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID> {
        try beginReadTransaction()
        var keys = try classKeys(listedBy: try connection.statement(.classKeysInUse))
        if try isSynchronizing() { keys.formUnion(try classKeysOfCopies()) }
        return keys
    }

    /// Returns the class keys that a statement lists: accessibility, then generation.
    func classKeys(listedBy statement: SQLiteStatement) throws(KeychainFailure) -> Set<ClassKeyID> {
        defer { statement.reset() }
        var keys: Set<ClassKeyID> = []
        while try statement.step() {
            // A value that is no valid generation refers to no key.
            guard let generation = UInt32(exactly: statement.integer(at: 1)) else { continue }
            let accessibility = UInt8(exactly: statement.integer(at: 0)).flatMap(ItemAccessibility.init(code:))
            for named in accessibility.map({ [$0] }) ?? ItemAccessibility.allCases {
                keys.insert(ClassKeyID(named, generation: generation))
            }
        }
        return keys
    }
}
