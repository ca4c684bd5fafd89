// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

/// The pages of a closed keychain's file, for tests that build pages of their own.
///
/// Source of the format: SQLite, "Database File Format", section 1.6.
private struct DatabasePages {
    static let byteCount = 4_096
    private static let contentByteCount = 4_080

    let path: String
    private(set) var pages: [[UInt8]]

    init(_ path: String) throws {
        self.path = path
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        pages = stride(from: 0, to: bytes.count, by: Self.byteCount).map { Array(bytes[$0..<$0 + Self.byteCount]) }
    }

    /// Pages count from 1.
    subscript(number: Int) -> [UInt8] {
        get { pages[number - 1] }
        set { pages[number - 1] = newValue }
    }

    var nextNumber: Int { pages.count + 1 }

    mutating func append(_ page: [UInt8]) { pages.append(page) }

    /// Writes the pages in place, with correct checksums.
    func write() throws {
        let file = try FileHandle(forUpdating: URL(filePath: path))
        for (index, page) in pages.enumerated() {
            var page = page
            if index == 0 { page.replaceSubrange(28..<32, with: Self.bigEndian(pages.count, 4)) }
            PageChecksums.writeChecksum(into: &page, number: UInt64(index) + 1)
            try file.seek(toOffset: UInt64(index * Self.byteCount))
            try file.write(contentsOf: page)
        }
        try file.close()
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    static func bigEndian(_ number: Int, _ byteCount: Int) -> [UInt8] {
        (0..<byteCount).map { UInt8(truncatingIfNeeded: number >> (8 * (byteCount - 1 - $0))) }
    }

    /// The children of an interior page of a table.
    func children(of number: Int) -> [Int] {
        let page = self[number]
        let count = Self.number(page[3..<5])
        return (0..<count).map { cell in
            let offset = Self.number(page[12 + 2 * cell..<14 + 2 * cell])
            return Self.number(page[offset..<offset + 4])
        } + [Self.number(page[8..<12])]
    }

    /// Lets every pointer of an interior page lead to one child.
    mutating func point(_ number: Int, to child: Int, likePage template: [UInt8]) {
        var page = template
        for cell in 0..<Self.number(page[3..<5]) {
            let offset = Self.number(page[12 + 2 * cell..<14 + 2 * cell])
            page.replaceSubrange(offset..<offset + 4, with: Self.bigEndian(child, 4))
        }
        page.replaceSubrange(8..<12, with: Self.bigEndian(child, 4))
        self[number] = page
    }

    /// An interior page of a table, which begins `inset` bytes after the beginning of `base`.
    static func interior(_ children: [Int], in base: [UInt8] = .init(repeating: 0, count: byteCount), inset: Int = 0) -> [UInt8] {
        var page = base
        var end = contentByteCount
        for (index, child) in children.dropLast().enumerated() {
            end -= 5
            page.replaceSubrange(end..<end + 5, with: bigEndian(child, 4) + [UInt8(min(index + 1, 127))])
            page.replaceSubrange(inset + 12 + 2 * index..<inset + 14 + 2 * index, with: bigEndian(end, 2))
        }
        let header = [5, 0, 0] + bigEndian(children.count - 1, 2) + bigEndian(end, 2) + [0] + bigEndian(children.last ?? 0, 4)
        page.replaceSubrange(inset..<inset + 12, with: header)
        return page
    }

    /// A leaf of `sqlite_schema` with rows for one index.
    static func schemaLeaf(_ rowCount: Int, index: String, table: String, rootPage: Int) -> [UInt8] {
        var page = [UInt8](repeating: 0, count: byteCount)
        var end = contentByteCount
        for row in 0..<rowCount {
            let texts = ["index", index, table].map { Array($0.utf8) }
            let types = texts.map { UInt8(13 + 2 * $0.count) } + [2, 0]
            let record = [UInt8(types.count + 1)] + types + texts.flatMap(\.self) + bigEndian(rootPage, 2)
            let cell = [UInt8(record.count), UInt8(row + 1)] + record
            end -= cell.count
            page.replaceSubrange(end..<end + cell.count, with: cell)
            page.replaceSubrange(8 + 2 * row..<10 + 2 * row, with: bigEndian(end, 2))
        }
        page.replaceSubrange(0..<8, with: [13, 0, 0] + bigEndian(rowCount, 2) + bigEndian(end, 2) + [0])
        return page
    }
}

@Suite("Tables without an end", .blocking, .timeLimit(.minutes(10)))
struct EndlessTableTests {
    /// Of a kilobyte each, so that the table has some forty pages.
    private static let itemCount = 120
    /// Six pages with some thirty children each.
    private static let depth = 6

    /// Makes a keychain with a passcode and runs `body` after `change` has changed its file.
    private func withChangedKeychain(
        _ change: (inout DatabasePages, RawDatabase) throws -> Void, _ body: (_ home: String) throws -> Void
    ) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            do {
                let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
                let secret = String(repeating: "s", count: 1_000)
                for number in 1...Self.itemCount { try keychain.addItem("account \(number)", secret, .always) }
            }
            var pages = try DatabasePages(home + "/keychain.db")
            try change(&pages, RawDatabase(home + "/keychain.db"))
            try pages.write()
            try body(home)
        }
    }

    /// Runs every operation, and expects that each ends with damage or without a wrong answer.
    private func expectThatAllEnd(_ home: String) throws {
        func expectDamage(_ name: String, _ body: (LocalKeychain) throws -> Void) {
            let failure = #expect(throws: KeychainFailure.self, "\(name)") {
                try body(LocalKeychain.withCheapPasscode(home: home, holder: .processMemory))
            }
            #expect(failure?.isDamage == true, "\(name): \(String(describing: failure))")
        }
        expectDamage("read") { _ = try $0.secret(of: "absent") }
        expectDamage("add") { try $0.addItem("new", "secret", .always) }
        expectDamage("update") { try $0.updateItem("account 1", to: "new") }
        let keychain = LocalKeychain(home: home)
        // A listing has the rows that an index leads to.
        _ = try? keychain.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), limit: nil))
        _ = try? keychain.report()
        let report = try? keychain.verify(purgingQuarantine: false)
        #expect(report?.isSound != true)
        #expect((try? keychain.repair(applying: true))??.originalPath == nil)
        _ = try? keychain.acceptContent(applying: false)
        _ = try? keychain.lock(.everything)
    }

    @Test("Pages of a table that point at each other")
    func items() throws {
        try withChangedKeychain { pages, database in
            let root = try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'items'")
            let children = pages.children(of: root)
            try #require(children.count > 2 * Self.depth)
            let template = pages[root]
            let chain = [root] + children.prefix(Self.depth) + [try #require(children.last)]
            for (page, next) in zip(chain, chain.dropFirst()) { pages.point(page, to: next, likePage: template) }
        } _: { home in
            try expectThatAllEnd(home)
        }
    }

    @Test("Pages of the list of tables that point at each other")
    func schema() throws {
        try withChangedKeychain { pages, database in
            let index = try database.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'items_id'")
            // The first page becomes an interior page above its former content and the endless part.
            let first = pages[1]
            try #require(first[100] == 13)
            let cellCount = DatabasePages.number(first[103..<105])
            var moved = first
            moved.replaceSubrange(0..<8 + 2 * cellCount, with: first[100..<108 + 2 * cellCount])
            moved.replaceSubrange(8 + 2 * cellCount..<108 + 2 * cellCount, with: repeatElement(0, count: 100))
            let former = pages.nextNumber
            pages.append(moved)
            pages.append(DatabasePages.schemaLeaf(50, index: "items_id", table: "items", rootPage: index))
            for _ in 0..<Self.depth {
                pages.append(DatabasePages.interior(Array(repeating: pages.nextNumber - 1, count: 400)))
            }
            let base = Array(first.prefix(100)) + [UInt8](repeating: 0, count: DatabasePages.byteCount - 100)
            pages[1] = DatabasePages.interior([former, pages.nextNumber - 1], in: base, inset: 100)
        } _: { home in
            try expectThatAllEnd(home)
        }
    }
}
