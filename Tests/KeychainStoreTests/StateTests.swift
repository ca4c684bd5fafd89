// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// A cipher that hides nothing, for tests of the store alone.
struct PlainStateCipher: StateCipher {
    func element(ofRowTag tag: [UInt8]) -> UInt256 { number(tag, 3) }

    func digest(ofKeybag bytes: [UInt8]) -> UInt256 { number(bytes, 5) }

    private func number(_ bytes: [UInt8], _ seed: UInt64) -> UInt256 {
        var words = [seed, seed + 1, seed + 2, seed + 3]
        for byte in bytes { for index in words.indices { words[index] = words[index] &* 0x100_0000_01B3 &+ UInt64(byte) } }
        var encoded: [UInt8] = []
        for word in words { encoded.append(littleEndian: word) }
        var reader = ByteReader(encoded)
        return reader.readUInt256() ?? UInt256()
    }

    func seal(_ state: StoreState) -> [UInt8] {
        var bytes: [UInt8] = [42]
        bytes.append(littleEndian: state.changeCount)
        bytes.append(state.id)
        bytes.append(littleEndian: state.rowCount)
        bytes.append(littleEndian: state.rowSum)
        bytes.append(littleEndian: state.keybagDigest)
        return bytes
    }

    func open(_ sealed: [UInt8]) -> StoreState? {
        var reader = ByteReader(sealed)
        guard reader.readByte() == 42, let changeCount = reader.readUInt64(), let id = reader.readBytes(16).flatMap({ Identifier128($0) }),
            let rowCount = reader.readUInt64(), let rowSum = reader.readUInt256(), let keybagDigest = reader.readUInt256()
        else { return nil }
        return StoreState(changeCount: changeCount, id: id, rowCount: rowCount, rowSum: rowSum, keybagDigest: keybagDigest)
    }
}

@Suite("The state of a store", .blocking)
struct StateTests {
    private let directory: TemporaryDirectory
    private let store: SQLiteItemStore

    init() throws {
        directory = try TemporaryDirectory()
        let cipher = PlainStateCipher()
        let keybag = ItemStoreContract.keybag
        try SQLiteItemStore.create(
            at: directory.storePath, storeID: .random(), keybag: keybag.copies[0], generation: keybag.generation,
            state: cipher.seal(.initial(keybagDigest: cipher.digest(ofKeybag: keybag.copies[0])))
        ).mustBeCreated()
        store = try SQLiteItemStore(openingAt: directory.storePath)
        try store.protect(with: cipher, using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
    }

    /// Every part of the state that another opening would compare.
    private func expectConsistent(changeCount: UInt64, _ location: SourceLocation = #_sourceLocation) throws {
        #expect(try store.stateProblem(readingAllRows: true) == nil, sourceLocation: location)
        #expect(try store.changeCount() == changeCount, sourceLocation: location)
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        try other.protect(
            with: PlainStateCipher(), using: store.keybag(), anchorPaths: [directory.path + "/state/anchor"])
        #expect(try other.stateProblem(readingAllRows: true) == nil, sourceLocation: location)
        other.close()
    }

    private static func row(_ account: UInt64, tag: UInt8) -> SealedRow {
        var row = SampleRows.row(account: account)
        row.tag = Array(repeating: tag, count: 32)
        return row
    }

    private func write(_ body: (any ItemWriting) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try store.write(ifKeybagGeneration: try store.keybag().generation, body).mustBeWritten()
    }

    @Test("Each transaction counts once, whatever it changes, and a lock does not count")
    func counts() throws {
        try expectConsistent(changeCount: 1)
        try store.insert((1...3).map { Self.row($0, tag: UInt8($0)) })
        try expectConsistent(changeCount: 2)
        let numbers = try store.rows().compactMap(\.number)
        try write { writing throws(KeychainFailure) in
            try writing.replace(number: numbers[0], with: Self.row(1, tag: 9))
            try writing.replace(number: numbers[0], with: Self.row(7, tag: 10))
            try writing.remove(number: numbers[1])
            try writing.quarantine(number: numbers[2], at: 1)
            try writing.insert(Self.row(20, tag: 20))
        }
        try expectConsistent(changeCount: 3)
        try store.advanceLockEpoch(.everything)
        try write { _ in }
        try expectConsistent(changeCount: 3)
        try write { writing throws(KeychainFailure) in try writing.purgeQuarantine() }
        try expectConsistent(changeCount: 4)
        try store.replaceKeybag([9, 9, 9], generation: 8)
        try expectConsistent(changeCount: 5)
    }

    @Test("A failed write changes nothing, also one that ignores that a row exists already")
    func failures() throws {
        try store.insert([Self.row(1, tag: 1)])
        #expect(throws: KeychainFailure(.decode, "")) {
            try write { writing throws(KeychainFailure) in
                try writing.insert(Self.row(2, tag: 2))
                throw KeychainFailure(.decode, "by the writer")
            }
        }
        try expectConsistent(changeCount: 2)
        try write { writing throws(KeychainFailure) in
            do throws(KeychainFailure) { try writing.insert(Self.row(1, tag: 3)) } catch {}
            try writing.insert(Self.row(4, tag: 4))
        }
        try expectConsistent(changeCount: 3)
    }

    @Test("Writes that fail in a group take their changes of the state with them")
    func groups() throws {
        let store = store
        let failures = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<20 {
                let failure = failure { () throws(KeychainFailure) in
                    try store.write(ifKeybagGeneration: ItemStoreContract.keybag.generation, sharesFlush: true) {
                        writing throws(KeychainFailure) in
                        try writing.insert(Self.row(UInt64(thread * 100 + round), tag: UInt8(thread * 20 + round)))
                        // After the change.
                        guard (thread + round) % 3 != 0 else { throw KeychainFailure(.decode, "by the writer") }
                    }.mustBeWritten()
                }
                if failure != nil { failures.withLock { $0 += 1 } }
            }
        }
        let failedCount = failures.withLock { $0 }
        #expect(failedCount == (0..<8).reduce(0) { sum, thread in sum + (0..<20).count { (thread + $0) % 3 == 0 } })
        #expect(try store.stateProblem(readingAllRows: true) == nil)
        #expect(try store.rows().count == 160 - failedCount)
    }

    @Test("Without the key of its state, a store is not changed")
    func withoutKey() throws {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(throws: KeychainFailure(.internal, "")) { try other.insert([Self.row(1, tag: 1)]) }
        try other.advanceLockEpoch(.everything)
        #expect(try other.rows().isEmpty)
    }

    @Test("A store from before the first release, without a state, is refused by name")
    func withoutColumn() throws {
        store.close()
        try RawDatabase(directory.storePath).execute("ALTER TABLE meta DROP COLUMN state")
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        let failure = failure { () throws(KeychainFailure) in
            try other.protect(
                with: PlainStateCipher(), using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        }
        #expect(failure?.cause == .unsupportedVersion)
    }

    @Test("A comparison of the rows is skipped only while no program has written to the files", arguments: [false, true])
    func skipped(closesBetween: Bool) throws {
        try store.insert((1...5).map { Self.row($0, tag: UInt8($0)) })
        if closesBetween { store.close() }
        #expect(try comparedRowCount() == 0)
        let changed = try FileStatus(of: directory.storePath).changeNanoseconds
        repeat { try setMode(0o600, of: directory.storePath) } while try FileStatus(of: directory.storePath).changeNanoseconds == changed
        #expect(try comparedRowCount() == 5)
        #expect(try comparedRowCount() == 0)
    }

    @Test("A change of a file by another program during a transaction does not count as part of it", arguments: ["", "-wal"])
    func changedMeanwhile(suffix: String) throws {
        try store.insert((1...5).map { Self.row($0, tag: UInt8($0)) })
        let path = directory.storePath + suffix
        try write { writing throws(KeychainFailure) in
            try writing.insert(Self.row(6, tag: 6))
            // In another process: closing the file here would drop this process's locks on it.
            let process = Process()
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", #"sleep 0.05; dd if="$1" of="$1" bs=1 count=1 conv=notrunc status=none"#, "sh", path]
            try? process.run()
            process.waitUntilExit()
        }
        #expect(try comparedRowCount() == 6)
        #expect(try comparedRowCount() == 0)
        try store.insert([Self.row(7, tag: 7)])
        #expect(try comparedRowCount() == 0)
    }

    @Test("What a thread of its own has copied from a large log counts as the writer's change, and is all there")
    func copiedBesideWriter() throws {
        var options = StoreOptions()
        options.largeLogFrameCount = 250
        let writer = try SQLiteItemStore(openingAt: directory.storePath, options: options)
        try writer.protect(with: PlainStateCipher(), using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        var rows: [SealedRow] = []
        for number in 0..<12 as Range<UInt64> {
            let row = SampleRows.row(account: number, secretByteCount: 1_500_000)
            try writer.write(ifKeybagGeneration: ItemStoreContract.keybag.generation, sharesFlush: true) {
                writing throws(KeychainFailure) in
                try writing.insert(row)
            }.mustBeWritten()
            rows.append(row)
        }
        #expect(try writer.rows().count == 12)
        writer.close()
        #expect(try comparedRowCount() == 0)
        let reader = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(try Set(reader.rows().map(\.sealedSecret)) == Set(rows.map(\.sealedSecret)))
        #expect(try reader.integrityProblems().isEmpty)
    }

    /// Opens the store again, and returns the number of rows that this compares.
    private func comparedRowCount() throws -> Int {
        let other = try SQLiteItemStore(openingAt: directory.storePath)
        defer { other.close() }
        let cipher = CountingCipher()
        try other.protect(with: cipher, using: ItemStoreContract.keybag, anchorPaths: [directory.path + "/state/anchor"])
        return cipher.elementCount
    }
}

/// Counts the rows that a comparison reads.
final class CountingCipher: StateCipher {
    private let cipher = PlainStateCipher()
    private let count = Mutex(0)

    var elementCount: Int { count.withLock { $0 } }

    func element(ofRowTag tag: [UInt8]) -> UInt256 {
        count.withLock { $0 += 1 }
        return cipher.element(ofRowTag: tag)
    }

    func digest(ofKeybag bytes: [UInt8]) -> UInt256 { cipher.digest(ofKeybag: bytes) }
    func seal(_ state: StoreState) -> [UInt8] { cipher.seal(state) }
    func open(_ sealed: [UInt8]) -> StoreState? { cipher.open(sealed) }
}
