// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

/// Images of a small keychain's file, each damaged in one way, and the engine's answers to them.
struct DamagedImages: Sendable {
    /// One way to damage the file.
    struct Damage: Sendable {
        let name: String
        /// The page that verification must report; nil: none in particular.
        var page: Int64?
        let apply: @Sendable (inout [UInt8]) -> Void
    }

    struct Tally: Sendable {
        var imageCount = 0
        /// Images of which some read threw an error other than `.itemNotFound`.
        var refusedCount = 0
        /// Images from which a wrong secret was read.
        var wrong: [String] = []
        /// Images in which an existing item was reported as not found.
        var silent: [String] = []
        /// Images whose damage verification did not report.
        var unnamed: [String] = []

        mutating func add(_ other: Tally) {
            imageCount += other.imageCount
            refusedCount += other.refusedCount
            wrong += other.wrong
            silent += other.silent
            unnamed += other.unnamed
        }
    }

    static let pageByteCount = 4_096
    /// One byte in so many is damaged.
    static let byteStep = Scale.isExhaustive ? 1 : Scale.pick(380, full: 19)

    private static let accounts = (1...4).map { "account \($0)" }

    /// The undamaged file.
    let bytes: [UInt8]
    private let fileName: String
    private let directory: TemporaryDirectory
    /// Whether each page of a damaged image gets the checksum of its damaged content.
    private let hidesDamage: Bool

    var pageCount: Int { bytes.count / Self.pageByteCount }

    /// `hidesDamage`: recomputes the checksums of damaged images, so that page checksums detect nothing.
    init(hidesDamage: Bool = false) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        self.hidesDamage = hidesDamage
        let home = directory.path + "/original"
        do {
            let keychain = LocalKeychain(home: home)
            for account in Self.accounts { try keychain.addItem(account, "secret of \(account)") }
        }
        fileName = "keychain.db"
        bytes = try [UInt8](Data(contentsOf: URL(filePath: home + "/" + fileName)))
    }

    /// Images of a -wal file, as a killed process leaves it, whose last transaction adds `lastAccount`.
    init(ofLogWithLastItem lastAccount: String) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        hidesDamage = false
        let keychain = LocalKeychain(home: directory.path + "/live")
        for account in Self.accounts + [lastAccount] { try keychain.addItem(account, "secret of \(account)") }
        // By another process: reading a database here would drop this process's locks on it.
        let copying = Process()
        copying.executableURL = URL(filePath: "/bin/cp")
        copying.arguments = ["-p", "-r", directory.path + "/live", directory.path + "/original"]
        try copying.run()
        copying.waitUntilExit()
        withExtendedLifetime(keychain) {}
        fileName = "keychain.db-wal"
        bytes = try [UInt8](Data(contentsOf: URL(filePath: directory.path + "/original/" + fileName)))
    }

    /// Examines every image, on two threads.
    func tally(_ damages: [Damage]) async throws -> Tally {
        let threadCount = 2
        let outcomes = await onThreads(
            (0..<threadCount).map { thread in
                { @Sendable () -> Result<Tally, any Error> in
                    Result { try look(at: damages, on: thread, of: threadCount) }
                }
            })
        var tally = Tally()
        for outcome in outcomes { tally.add(try outcome.get()) }
        return tally
    }

    private func look(at damages: [Damage], on thread: Int, of threadCount: Int) throws -> Tally {
        let home = directory.path + "/\(UUID().uuidString)"
        try FileManager.default.copyItem(atPath: directory.path + "/original", toPath: home)
        defer { try? FileManager.default.removeItem(atPath: home) }
        var tally = Tally()
        for index in stride(from: thread, to: damages.count, by: threadCount) {
            var bytes = bytes
            damages[index].apply(&bytes)
            if hidesDamage { Self.recomputeChecksums(&bytes) }
            // Files that SQLite made beside the previous image.
            for suffix in ["", "-wal", "-shm", "-journal"] { _ = unsafe unlink(home + "/keychain.db" + suffix) }
            try FileManager.default.copyItem(atPath: directory.path + "/original/keychain.db", toPath: home + "/keychain.db")
            _ = unsafe chmod(home + "/keychain.db", 0o600)
            try Data(bytes).write(to: URL(filePath: home + "/" + fileName))
            look(at: home, damages[index], &tally)
        }
        return tally
    }

    private static func recomputeChecksums(_ bytes: inout [UInt8]) {
        for start in stride(from: 0, to: bytes.count, by: pageByteCount) {
            var page = Array(bytes[start..<start + pageByteCount])
            PageChecksums.writeChecksum(into: &page, number: UInt64(start / pageByteCount) + 1)
            bytes.replaceSubrange(start..<start + pageByteCount, with: page)
        }
    }

    private func look(at home: String, _ damage: Damage, _ tally: inout Tally) {
        let keychain = LocalKeychain(home: home)
        var isRefused = false
        var isSilent = false
        for account in Self.accounts {
            do throws(KeychainFailure) {
                let secret = try keychain.secret(of: account)
                if secret != "secret of \(account)" { tally.wrong.append("\(damage.name): \(account)") }
            } catch {
                if error.status == .itemNotFound { isSilent = true } else { isRefused = true }
            }
        }
        do throws(KeychainFailure) {
            if try keychain.itemCount() < Self.accounts.count { isSilent = true }
        } catch {
            if error.status == .itemNotFound { isSilent = true } else { isRefused = true }
        }
        tally.imageCount += 1
        if isRefused { tally.refusedCount += 1 }
        if isSilent { tally.silent.append(damage.name) }
        if !hidesDamage, !isNamed(damage, by: keychain, isRefused: isRefused) { tally.unnamed.append(damage.name) }
    }

    private func isNamed(_ damage: Damage, by keychain: LocalKeychain, isRefused: Bool) -> Bool {
        do throws(KeychainFailure) {
            let report = try keychain.verify(purgingQuarantine: false)
            guard let page = damage.page else { return !isRefused || !report.isSound }
            return report.structuralProblems.contains { $0.damagedPage == page }
        } catch {
            // It cannot be opened.
            return error.status == .notAvailable
        }
    }
}

extension LocalKeychain {
    /// Counts the items that a search for all of them returns.
    fileprivate func itemCount() throws(KeychainFailure) -> Int {
        let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.service: .string("test")]))
        return try copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true)).count
    }
}

@Suite("A damaged file never causes a wrong secret or a wrong 'not found'", .blocking)
struct DamagedPageTests {
    private typealias Damage = DamagedImages.Damage

    private static func expectNoSilentLoss(_ tally: DamagedImages.Tally) {
        #expect(tally.wrong.isEmpty, "\(tally.wrong.prefix(5))")
        #expect(tally.silent.isEmpty, "\(tally.silent.prefix(5)) of \(tally.silent.count)")
        #expect(tally.unnamed.isEmpty, "\(tally.unnamed.prefix(5)) of \(tally.unnamed.count)")
        #expect(tally.refusedCount > 0)
    }

    /// The number of the page at this offset, counted in pages.
    private static func pageNumber(_ index: Int) -> Int64 { Int64(index + 1) }

    /// One random bit in each of the bytes.
    private static func flips(_ images: DamagedImages, step: Int) -> [Damage] {
        let offset = Int.random(in: 0..<step)
        return stride(from: offset, to: images.bytes.count, by: step).map { position in
            let bit = Int.random(in: 0..<8)
            return Damage(name: "bit \(bit) of byte \(position)", page: pageNumber(position / DamagedImages.pageByteCount)) { bytes in
                bytes[position] ^= 1 << bit
            }
        }
    }

    @Test("With one flipped bit, reads of that page fail, and verification reports the page")
    func flipped() async throws {
        let images = try DamagedImages()
        let flips = Self.flips(images, step: DamagedImages.byteStep)
        let tally = try await images.tally(flips)
        #expect(tally.imageCount == flips.count)
        Self.expectNoSilentLoss(tally)
    }

    @Test("Planted fault: flipped bits under recomputed checksums make items vanish")
    func flippedWithoutChecksums() async throws {
        let images = try DamagedImages(hidesDamage: true)
        let tally = try await images.tally(Self.flips(images, step: Scale.pick(380, full: 41)))
        #expect(!tally.silent.isEmpty)
        #expect(tally.wrong.isEmpty, "what is sealed is safe even so: \(tally.wrong)")
    }

    @Test("A page overwritten by zeros, ones, or random bytes is reported")
    func overwritten() async throws {
        let images = try DamagedImages()
        let contents: [(String, @Sendable () -> UInt8)] = [
            ("zeros", { 0 }), ("ones", { 0xFF }), ("chance", { UInt8.random(in: 0 ... .max) }),
        ]
        let damages = (0..<images.pageCount).flatMap { page in
            (Scale.isFull ? contents : [contents[page % contents.count]]).map { name, byte in
                Damage(name: "page \(page + 1): \(name)", page: Self.pageNumber(page)) { bytes in
                    let start = page * DamagedImages.pageByteCount
                    for index in start..<start + DamagedImages.pageByteCount { bytes[index] = byte() }
                }
            }
        }
        Self.expectNoSilentLoss(try await images.tally(damages))
    }

    @Test("Verification names each of several damaged pages")
    func several() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            try LocalKeychain(home: home).addItem("kept", "a secret")
            let handle = try FileHandle(forWritingTo: URL(filePath: home + "/keychain.db"))
            let pages: [UInt64] = [4, 6, 8]
            for page in pages {
                try handle.seek(toOffset: (page - 1) * 4_096 + 100)
                try handle.write(contentsOf: Data("scratched".utf8))
            }
            try handle.close()
            let problems = try LocalKeychain(home: home).verify(purgingQuarantine: false).structuralProblems
            for page in 1...10 as ClosedRange<UInt64> {
                #expect(problems.contains { $0.damagedPage == Int64(page) } == pages.contains(page), "\(page): \(problems)")
            }
        }
    }

    @Test("Two swapped pages")
    func swapped() async throws {
        let images = try DamagedImages()
        let pairs = (0..<images.pageCount).flatMap { first in (first + 1..<images.pageCount).map { (first, $0) } }
        let damages = pairs.shuffled().prefix(Scale.pick(10, full: .max)).map { first, second in
            Damage(name: "pages \(first + 1) and \(second + 1)", page: Self.pageNumber(second)) { bytes in
                for index in 0..<DamagedImages.pageByteCount {
                    bytes.swapAt(first * DamagedImages.pageByteCount + index, second * DamagedImages.pageByteCount + index)
                }
            }
        }
        Self.expectNoSilentLoss(try await images.tally(damages))
    }

    @Test("A truncated or extended file is reported")
    func cut() async throws {
        let images = try DamagedImages()
        let step = Scale.isExhaustive ? 1 : Scale.pick(1_940, full: 97)
        let lengths = Set(stride(from: Int.random(in: 0..<step), to: images.bytes.count, by: step))
            .union((0..<images.pageCount).map { $0 * DamagedImages.pageByteCount }).sorted()
        Self.expectNoSilentLoss(
            try await images.tally(lengths.map { length in Damage(name: "\(length) bytes") { $0.removeLast($0.count - length) } }))
        let longer = [1, 100, 4_096, 10_000].map { count in
            Damage(name: "\(count) bytes more") { $0 += [UInt8](repeating: 7, count: count) }
        }
        let tally = try await images.tally(longer)
        #expect(tally.wrong.isEmpty && tally.silent.isEmpty && tally.unnamed.isEmpty, "\(tally)")
    }
}

@Suite("A damaged -wal file of a killed process does not make stored items vanish", .blocking)
struct DamagedLogTests {
    private static let frameByteCount = 24 + 4_096

    @Test("With a flipped bit before the last transaction, the keychain is rejected as damaged, and verification reports it")
    func flipped() async throws {
        let images = try DamagedImages(ofLogWithLastItem: "last")
        let starts = stride(from: 32, to: images.bytes.count, by: Self.frameByteCount)
        // The frame that ends a transaction contains the size of the database.
        let commits = starts.filter { start in images.bytes[start + 4..<start + 8].contains { $0 != 0 } }
        try #require(commits.count == 5)
        let end = commits[3] + Self.frameByteCount
        // The file is several times as long as the database.
        let step = Scale.isExhaustive ? 1 : 5 * DamagedImages.byteStep
        let flips = stride(from: Int.random(in: 0..<step), to: end, by: step).map { position in
            let bit = Int.random(in: 0..<8)
            return DamagedImages.Damage(name: "bit \(bit) of byte \(position)") { $0[position] ^= 1 << bit }
        }
        let tally = try await images.tally(flips)
        #expect(tally.imageCount == flips.count)
        #expect(tally.refusedCount == flips.count)
        #expect(tally.wrong.isEmpty, "\(tally.wrong.prefix(5))")
        #expect(tally.silent.isEmpty, "\(tally.silent.prefix(5)) of \(tally.silent.count)")
        #expect(tally.unnamed.isEmpty, "\(tally.unnamed.prefix(5)) of \(tally.unnamed.count)")
    }
}
