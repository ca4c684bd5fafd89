// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

extension StoreSession: ItemReading {
    func forEachRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        var numbers: [Int64]
        switch SearchPlan(query, includingSecrets: includingSecrets) {
        case .selectiveRows(let name):
            let found = try selectiveRows(name, matching: query, includingSecrets: includingSecrets)
            guard let first = found.first else { return }
            if found.others.isEmpty {
                _ = try body(first)
                return
            }
            numbers = found.others
            if let number = first.number { numbers.append(number) }
        case .byNumbers(let name, let parameters):
            numbers = try self.numbers(name, parameters)
        }
        numbers.sort()
        try beginReadTransaction()
        for number in numbers {
            guard let row = try row(number, matching: query, includingSecrets: includingSecrets) else { continue }
            guard try body(row) == .proceed else { return }
        }
    }

    func forEachReadableRow(
        matching query: RowQuery, includingSecrets: Bool, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Int {
        var last: Int64?
        do throws(KeychainFailure) {
            try forEachRow(matching: query, includingSecrets: includingSecrets) { row throws(KeychainFailure) in
                last = row.number
                return try body(row)
            }
            return 0
        } catch {
            guard error.isDamage, health.transactionFailure?.isDamage == true else { throw error }
        }
        return try salvage(matching: query, includingSecrets: includingSecrets, after: last, body)
    }

    /// Goes on where a damaged page ended a search: an index tells which rows there are, and each is read by itself.
    ///
    /// Rows come in ascending order of their number, so those behind the last one that was handed over are left.
    private func salvage(
        matching query: RowQuery, includingSecrets: Bool, after last: Int64?, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) -> Int {
        var damagedPageRowCount = 0
        for number in try indexedNumbers(query).sorted() where number > last ?? .min {
            switch try readable(number, matching: query, includingSecrets: includingSecrets) {
            case .hidden: damagedPageRowCount += 1
            case .found(nil): continue
            case .found(let row?): guard try body(row) == .proceed else { return damagedPageRowCount }
            }
        }
        return damagedPageRowCount
    }

    private enum Readable {
        case found(SealedRow?)
        case hidden
    }

    /// The row of that number: without its secret where that alone cannot be read.
    private func readable(_ number: Int64, matching query: RowQuery, includingSecrets: Bool) throws(KeychainFailure) -> Readable {
        do throws(KeychainFailure) {
            return .found(try row(number, matching: query, includingSecrets: includingSecrets))
        } catch {
            guard error.isDamage else { throw error }
            return includingSecrets ? try readable(number, matching: query, includingSecrets: false) : .hidden
        }
    }

    /// The numbers of all rows that may match, from indices alone: a table's pages may be damaged.
    private func indexedNumbers(_ query: RowQuery) throws(KeychainFailure) -> [Int64] {
        switch SearchPlan(query, includingSecrets: false) {
        case .byNumbers(let name, let parameters) where name != .numbersByClass && name != .allNumbers:
            return try numbers(name, parameters)
        case .selectiveRows:
            try beginReadTransaction()
            let statement = try connection.statement(query.id == nil ? .indexedNumbersByKey : .indexedNumbersByID)
            defer { statement.reset() }
            if let id = query.id { statement.bind(id, at: 1) }
            if query.id == nil, let service = query.serviceDigest, let account = query.accountDigest {
                statement.bind(service, at: 1)
                statement.bind(account, at: 2)
            }
            var numbers: [Int64] = []
            while try statement.step() { numbers.append(statement.rowNumber) }
            return numbers
        case .byNumbers:
            return try numbers(.allIndexedNumbers, .none)
        }
    }

    /// The first row that matches, and the numbers of the others, which are rare.
    private func selectiveRows(
        _ name: StoreStatement, matching query: RowQuery, includingSecrets: Bool
    ) throws(KeychainFailure) -> (first: SealedRow?, others: [Int64]) {
        let mayHoldState = canRetainSnapshot
        if !mayHoldState { try beginReadTransaction() }
        let statement = try connection.statement(name)
        statement.bindKey(of: query)
        var first: SealedRow?
        var others: [Int64] = []
        do throws(KeychainFailure) {
            while try statement.step(), !statement.isSentinelRow {
                guard statement.rowMatches(query) else { continue }
                if first == nil {
                    first = statement.row(includingSecret: includingSecrets, foundBy: query)
                } else {
                    others.append(statement.rowNumber)
                }
            }
        } catch {
            statement.reset()
            throw error
        }
        if mayHoldState { retainSnapshot(with: statement) } else { statement.reset() }
        return (first, others)
    }

    private func numbers(
        _ name: StoreStatement, _ parameters: SearchPlan.NumberParameters
    ) throws(KeychainFailure) -> [Int64] {
        try beginReadTransaction()
        let statement = try connection.statement(name)
        defer { statement.reset() }
        switch parameters {
        case .digest(let digest): statement.bind(digest, at: 1)
        case .attribute(let attribute):
            statement.bind(Int64(attribute.attribute.rawValue), at: 1)
            statement.bind(attribute.digest, at: 2)
        case .itemClass(let itemClass): statement.bind(Int64(itemClass.code), at: 1)
        case .none: break
        }
        var numbers: [Int64] = []
        while try statement.step() { numbers.append(statement.rowNumber) }
        return numbers
    }

    /// The row of that number, if it is still there and matches.
    ///
    /// The statement is free again when this returns.
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
        var failure = KeychainFailure(.notAvailable, "neither copy of the store's keybag can be read", isDamage: true)
        for name in [StoreStatement.keybag, .keybagCopy] {
            do throws(KeychainFailure) {
                if let copy = try keybagCopy(name) { copies.append(copy) }
            } catch {
                // That the disk failed, or another process was in the way, is not damage.
                if !error.isDamage { failure = error }
            }
        }
        guard !copies.isEmpty else { throw failure }
        return StoredKeybag(generation: generation, copies: copies)
    }

    func keybagGeneration() throws(KeychainFailure) -> UInt64 {
        guard let generation = try singleInteger(.keybagGeneration) else {
            throw KeychainFailure(.notAvailable, "the store is damaged: it has no keybag generation", isDamage: true)
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

/// Rows by the class keys they are under.
extension StoreSession {
    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        try beginReadTransaction()
        let statement = try connection.statement(.countUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        return try statement.step() ? Int(statement.integer(at: 0)) : 0
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try beginReadTransaction()
        // Sought anew from the last one each time: so a batch costs what it hands over, and the row in hand may change.
        var last = number
        while let row = try nextRow(underPasscodeKeysBelow: generation, after: last) {
            last = row.number ?? last
            guard try body(row) == .proceed else { return }
        }
    }

    private func nextRow(underPasscodeKeysBelow generation: UInt32, after number: Int64) throws(KeychainFailure) -> SealedRow? {
        let statement = try connection.statement(.nextUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        statement.bind(number, at: 2)
        return try statement.step() ? statement.row(includingSecret: true, foundBy: nil) : nil
    }

    func classKeysInUse() throws(KeychainFailure) -> Set<ClassKeyID> {
        try beginReadTransaction()
        let statement = try connection.statement(.classKeysInUse)
        defer { statement.reset() }
        var keys: Set<ClassKeyID> = []
        while try statement.step() {
            // What is no generation names no key.
            guard let generation = UInt32(exactly: statement.integer(at: 1)) else { continue }
            let accessibility = UInt8(exactly: statement.integer(at: 0)).flatMap(Accessibility.init(code:))
            for named in accessibility.map({ [$0] }) ?? Accessibility.allCases {
                keys.insert(ClassKeyID(named, generation: generation))
            }
        }
        return keys
    }
}

/// How the rows of a query are found.
///
/// Every other condition is checked on the rows found.
enum SearchPlan {
    /// An index gives a few rows at the most, usually one: read them as they come.
    case selectiveRows(StoreStatement)
    /// Perhaps many: note their numbers first, then read one row at a time.
    case byNumbers(StoreStatement, NumberParameters)

    enum NumberParameters {
        case digest(IndexDigest)
        case attribute(AttributeDigest)
        case itemClass(ItemClass)
        case none
    }

    init(_ query: RowQuery, includingSecrets: Bool) {
        if query.id != nil {
            self = .selectiveRows(includingSecrets ? .rowsByIDWithSecret : .rowsByID)
        } else if query.serviceDigest != nil, query.accountDigest != nil {
            if query.remainingKeyDigest != nil {
                self = .selectiveRows(includingSecrets ? .rowsByPrimaryKeyWithSecret : .rowsByPrimaryKey)
            } else {
                self = .selectiveRows(includingSecrets ? .rowsByServiceAndAccountWithSecret : .rowsByServiceAndAccount)
            }
        } else if let service = query.serviceDigest {
            self = .byNumbers(.numbersByService, .digest(service))
        } else if let account = query.accountDigest {
            self = .byNumbers(.numbersByAccount, .digest(account))
        } else if let attribute = query.attributeDigests.first {
            self = .byNumbers(.numbersByAttribute, .attribute(attribute))
        } else if let itemClass = query.itemClass {
            self = .byNumbers(.numbersByClass, .itemClass(itemClass))
        } else {
            self = .byNumbers(.allNumbers, .none)
        }
    }
}
