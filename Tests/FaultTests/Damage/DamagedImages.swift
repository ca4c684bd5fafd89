// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// A file of a small keychain, damaged in one way after the other, and what the engine makes of each.
struct DamagedImages: Sendable {
    /// One way to damage the file.
    struct Damage: Sendable {
        let name: String
        /// What verifying has to say: a page's number in words, or nothing in particular.
        var mention: String?
        let apply: @Sendable (inout [UInt8]) -> Void
    }

    struct Tally: Sendable {
        var imageCount = 0
        /// Images of which some read was refused.
        var refusedCount = 0
        /// Images that gave another secret than the one stored.
        var wrong: [String] = []
        /// Images in which an item that is there was said to be absent.
        var silent: [String] = []
        /// Images about which verifying did not say what it had to.
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
    /// `KEYCHAIN_FULL_DAMAGE=1` makes the suites try every byte instead of every nineteenth.
    static let byteStep = ProcessInfo.processInfo.environment["KEYCHAIN_FULL_DAMAGE"] == nil ? 19 : 1

    private static let accounts = (1...4).map { "account \($0)" }

    /// The file that is damaged, undamaged.
    let bytes: [UInt8]
    private let fileName: String
    private let directory: TemporaryDirectory
    private let verifies: Bool

    var pageCount: Int { bytes.count / Self.pageByteCount }

    /// `formatVersion` 1: without checksums, to see what they are for.
    init(formatVersion: Int = 2) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        verifies = formatVersion > 1
        let home = directory.path + "/original"
        do {
            let keychain = LocalKeychain(home: home)
            for account in Self.accounts { try keychain.addItem(account, "secret of \(account)") }
        }
        if formatVersion < 2 {
            try RawDatabase(home + "/keychain.db", stamps: false).execute("PRAGMA user_version = \(formatVersion)")
        }
        fileName = "keychain.db"
        bytes = try [UInt8](Data(contentsOf: URL(filePath: home + "/" + fileName)))
    }

    /// The -wal file that a killed process left behind; one more item than looked for is in its last transaction.
    init(ofLogWithLastItem lastAccount: String) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        verifies = true
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

    /// Looks at every image, on two threads.
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
            // What reading a damaged file has left behind belongs to that file.
            for suffix in ["", "-wal", "-shm", "-journal"] { _ = unsafe unlink(home + "/keychain.db" + suffix) }
            try FileManager.default.copyItem(atPath: directory.path + "/original/keychain.db", toPath: home + "/keychain.db")
            _ = unsafe chmod(home + "/keychain.db", 0o600)
            try Data(bytes).write(to: URL(filePath: home + "/" + fileName))
            look(at: home, damages[index], &tally)
        }
        return tally
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
        if verifies, !isNamed(damage, by: keychain, isRefused: isRefused) { tally.unnamed.append(damage.name) }
    }

    private func isNamed(_ damage: Damage, by keychain: LocalKeychain, isRefused: Bool) -> Bool {
        do throws(KeychainFailure) {
            let report = try keychain.verify(purgingQuarantine: false)
            guard let mention = damage.mention else { return !isRefused || !report.isSound }
            return report.structuralProblems.contains { $0.contains(mention) }
        } catch {
            // It cannot be opened, and the reason says so.
            return error.status == .notAvailable
        }
    }
}

extension LocalKeychain {
    /// How many items a search for all of them gives.
    fileprivate func itemCount() throws(KeychainFailure) -> Int {
        let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.service: .string("test")]))
        return try copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true)).count
    }
}
