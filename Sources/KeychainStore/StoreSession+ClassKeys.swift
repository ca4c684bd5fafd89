// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Rows by the class keys they are under.
extension StoreSession {
    func rowCount(underPasscodeKeysBelow generation: UInt32) throws(KeychainFailure) -> Int {
        try joinState()
        let statement = try connection.statement(.countUnderPasscodeKeysBelow)
        defer { statement.reset() }
        statement.bind(Int64(generation), at: 1)
        return try statement.step() ? Int(statement.integer(at: 0)) : 0
    }

    func forEachRow(
        underPasscodeKeysBelow generation: UInt32, after number: Int64, _ body: (SealedRow) throws(KeychainFailure) -> Iteration
    ) throws(KeychainFailure) {
        try joinState()
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
        try joinState()
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
