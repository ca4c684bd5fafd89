// SPDX-License-Identifier: Apache-2.0
@testable internal import Keybag
@testable internal import KeychainCore
@testable internal import KeychainStore

/// Rows as they may stand in a damaged database: any type and any value in any column.
final class StoredRowTarget: FuzzTarget {
    static let name = "stored-row"

    private let connection: SQLiteConnection
    private let statement: SQLiteStatement
    private let cipher: RowCipher

    private static let columnCount = RowColumn.allCases.count + 1

    init() throws {
        connection = try SQLiteConnection(path: ":memory:", access: .readWrite, busyTimeoutMilliseconds: 0)
        let parameters = (1...Self.columnCount).map { "?\($0)" }.joined(separator: ", ")
        statement = try unsafe SQLiteStatement(
            "SELECT \(parameters)", on: connection.handle, health: connection.health, scanLimit: connection.scanLimit)
        cipher = try RowTarget.cipher()
    }

    private enum Kind: Int, CaseIterable {
        case null, integer, real, blob
    }

    static func seeds() -> [[UInt8]] {
        func integer(_ value: UInt8) -> [UInt8] { [1, 0, 0, 0, 0, 0, 0, 0, value] }
        func blob(_ count: Int) -> [UInt8] { [3] + .counted(Array(repeating: 7, count: count)) }
        let numbers = [1, 1].map(integer) + [blob(16)] + [1, 6, 1, 0, 0].map(integer)
        let digests = Array(repeating: blob(16), count: 5) + [[3] + .counted([12] + Array(repeating: 7, count: 16))]
        let row = (numbers + digests + [[0], blob(40), blob(32), blob(80), blob(80)]).flatMap(\.self)
        return [row, Array(repeating: 0, count: columnCount)]
    }

    func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        var blobs: [SQLiteStatement.Blob] = []
        for index in 1...Int32(Self.columnCount) {
            switch Kind.allCases[reader.choice(below: Kind.allCases.count)] {
            case .null: blobs.append(.init(index: index, bytes: nil))
            case .integer: statement.bind(Int64(bitPattern: reader.number()), at: index)
            case .real: statement.bind(Double(bitPattern: reader.number()), at: index)
            case .blob: blobs.append(.init(index: index, bytes: reader.bytes()))
            }
        }
        try statement.withBound(blobs[...]) { () throws(KeychainFailure) in
            defer { statement.reset() }
            guard try statement.step() else { return }
            for includesSecret in [true, false] { try check(statement.row(includingSecret: includesSecret, foundBy: nil)) }
            _ = statement.rowMatches(RowQuery(itemClass: .genericPassword, id: ItemID(high: 1, low: 2)))
        }
    }

    /// A forged row never counts as intact, and cannot be opened.
    private func check(_ row: SealedRow) throws(KeychainFailure) {
        expect(!cipher.isIntact(row), "a forged row counts as intact")
        let classKey = try FixedKeys.classKey(ClassKeyID(row.header.accessibility, generation: row.header.classKeyGeneration))
        let opened = attempt(failingWith: .decode) { () throws(KeychainFailure) in
            try cipher.open(row, includingSecret: true, with: ConstraintKeys(), under: classKey)
        }
        expect(opened == nil, "a forged row can be opened")
        let packed = RowHeader.packed(row.header.attributeDigests)
        expect(RowHeader.unpacked(packed) == row.header.attributeDigests, "digests are read in another order than they are written")
    }
}
