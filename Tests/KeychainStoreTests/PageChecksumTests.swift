// SPDX-License-Identifier: Apache-2.0
import CSQLite
import CSQLiteShims
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Synchronization
import Testing

@Suite("Page checksums", .blocking, .timeLimit(.minutes(10)))
struct PageChecksumTests {
    private static let pageByteCount = 4_096
    private static let contentByteCount = 4_080
    /// SQLITE_IOERR_DATA, which Swift does not import.
    private static let badChecksum: Int32 = SQLITE_IOERR | 32 << 8

    static func checksum(_ page: [UInt8], number: UInt64) -> [UInt8] {
        var checksum = [UInt8](repeating: 0, count: 16)
        // A page and its checksum have the lengths that the function requires.
        unsafe keychain_page_checksum(page, number, &checksum)
        return checksum
    }

    /// Returns the numbers of pages with a wrong checksum.
    ///
    /// The store must be closed.
    static func wrongPages(_ path: String) throws -> [Int] {
        let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        #expect(!bytes.isEmpty && bytes.count % pageByteCount == 0)
        return (0..<bytes.count / pageByteCount).filter { page in
            let start = page * pageByteCount
            let content = Array(bytes[start..<start + pageByteCount])
            return checksum(content, number: UInt64(page + 1)) != Array(content.suffix(16))
        }.map { $0 + 1 }
    }

    private struct Vectors: Decodable {
        struct Case: Decodable {
            let name: String
            let pattern: Hexadecimal
            let page: UInt64
            let checksum: Hexadecimal
        }

        let cases: [Case]
    }

    @Test("Test vectors of an independent implementation")
    func vectors() throws {
        let vectors = try TestVectors.load("page-checksum-v1.json", as: Vectors.self)
        #expect(vectors.cases.count == 6)
        for vector in vectors.cases {
            let pattern = vector.pattern.bytes
            var page = (0..<Self.contentByteCount).map { pattern[$0 % pattern.count] }
            page += [UInt8](repeating: 0, count: 16)
            #expect(Self.checksum(page, number: vector.page) == vector.checksum.bytes, "\(vector.name)")
        }
    }

    @Test("One flipped bit, two flipped bits, and two swapped words change the checksum")
    func changes() {
        let page = (0..<Self.pageByteCount).map { _ in UInt8.random(in: 0 ... .max) }
        let expected = Self.checksum(page, number: 9)
        #expect(Self.checksum(page, number: 10) != expected)
        var missed = 0
        for byte in 0..<Self.contentByteCount {
            var changed = page
            changed[byte] ^= 1 << UInt8.random(in: 0..<8)
            if Self.checksum(changed, number: 9) == expected { missed += 1 }
            changed[Int.random(in: 0..<Self.contentByteCount)] ^= 0x80
            if changed != page, Self.checksum(changed, number: 9) == expected { missed += 1 }
        }
        // Two distant words that differ in the highest bit: sums that overflow would not change.
        for distance in [4, 8, 16, 64, 1_024, 4_064] {
            var first = page
            first.replaceSubrange(distance..<distance + 4, with: first[0..<4])
            first[distance + 3] ^= 0x80
            var second = first
            second[3] ^= 0x80
            second[distance + 3] ^= 0x80
            if Self.checksum(first, number: 9) == Self.checksum(second, number: 9) { missed += 1 }
        }
        #expect(missed == 0)
    }

    @Test("Every page of a new store, a written store, and a snapshot has a valid checksum")
    func everyPage() throws {
        let directory = try TemporaryDirectory()
        try directory.create()
        #expect(try Self.wrongPages(directory.storePath) == [])
        let snapshot = directory.path + "/snapshot.db"
        do {
            let store = try SQLiteItemStore(openingAt: directory.storePath)
            for batch in 0..<5 as Range<UInt64> {
                try store.insert((1...60).map { SampleRows.row(account: batch * 100 + $0, secretByteCount: 5_000) })
            }
            _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in
                for number in 1...150 as ClosedRange<Int64> { try writing.remove(number: number) }
            }
            try store.snapshot(to: snapshot)
        }
        #expect(try Self.wrongPages(directory.storePath) == [])
        #expect(try Self.wrongPages(snapshot) == [])
    }

    @Test("A damaged page with a newer version in the -wal file is neither read nor reported")
    func superseded() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        try store.insert((1...3).map { SampleRows.row(account: $0) })
        // As after a kill, the rows are only in the -wal file. Page 2 is the root of the table.
        let copies = try DirectoryCopy(of: directory)
        let handle = try #require(FileHandle(forUpdatingAtPath: copies.directory.storePath))
        try handle.seek(toOffset: UInt64(Self.pageByteCount) + 50)
        try handle.write(contentsOf: Data(repeating: 0x5A, count: 200))
        try handle.close()
        do {
            let copy = try SQLiteItemStore(openingAt: copies.directory.storePath)
            #expect(try copy.integrityProblems() == [])
            #expect(try copy.rows().count == 3)
            // A connection that writes checkpoints the -wal file on close.
            try copy.insert([SampleRows.row(account: 4)])
        }
        #expect(try Self.wrongPages(copies.directory.storePath) == [])
    }

    @Test("Reading a part of a page verifies the whole page")
    func partOfPage() throws {
        let directory = try TemporaryDirectory()
        do { try directory.makeStore().insert((1...3).map { SampleRows.row(account: $0) }) }
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        let whole = try #require(try handle.readToEnd())
        try handle.seek(toOffset: UInt64(2 * Self.pageByteCount) + 50)
        try handle.write(contentsOf: Data([whole[2 * Self.pageByteCount + 50] ^ 1]))
        try handle.close()
        let database = try RawDatabase(directory.storePath)
        for (byteCount, inset) in [(8, 0), (8, 4_000), (200, 0), (4_095, 1)] {
            let sound = try database.fileBytes(byteCount, at: Self.pageByteCount + inset)
            #expect(sound.code == SQLITE_OK)
            #expect(sound.bytes == [UInt8](whole[Self.pageByteCount + inset..<Self.pageByteCount + inset + byteCount]))
            let damaged = try database.fileBytes(byteCount, at: 2 * Self.pageByteCount + inset)
            #expect(damaged.code == Self.badChecksum && damaged.bytes.allSatisfy { $0 == 0 })
        }
    }

    @Test("No page is reported as damaged while another process writes")
    func besideWriters() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        let writer = try SQLiteItemStore(openingAt: directory.storePath)
        let done = Mutex(false)
        let writing = Task.detached {
            var number: UInt64 = 0
            while !done.withLock({ $0 }) {
                await Task.yield()
                number += 1
                // Larger than one checkpoint, so that pages are written while they are verified.
                try writer.insert([SampleRows.row(account: number, secretByteCount: 60_000)])
            }
        }
        for _ in 0..<30 { #expect(try store.integrityProblems() == []) }
        done.withLock { $0 = true }
        try await writing.value
    }

    @Test("A write that reads a damaged page changes nothing and reports damage")
    func writing() throws {
        let directory = try TemporaryDirectory()
        do {
            let store = try directory.makeStore()
            try store.insert((1...200).map { SampleRows.row(account: $0) })
        }
        let handle = try #require(FileHandle(forUpdatingAtPath: directory.storePath))
        let end = try handle.seekToEnd()
        for page in 11...end / 4_096 {
            try handle.seek(toOffset: (page - 1) * 4_096 + 2_000)
            try handle.write(contentsOf: Data("scratched".utf8))
        }
        try handle.close()
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        let failure = failure { () throws(KeychainFailure) in
            _ = try store.write(ifKeybagGeneration: 7) { writing throws(KeychainFailure) in try writing.remove(number: 100) }
        }
        #expect(failure?.status == .notAvailable && failure?.isDamage == true)
        #expect(failure?.cause == .sqlite(code: Self.badChecksum) && failure?.remedy == .repair)
        let problems = try store.integrityProblems()
        for page in 11...end / 4_096 { #expect(problems.contains { $0.damagedPage == Int64(page) }) }
        #expect(throws: KeychainFailure.self) { try store.snapshot(to: directory.path + "/snapshot.db") }
        #expect(try directory.names.contains("snapshot.db") == false)
    }
}
