// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Testing

/// A keychain below a directory, whose files a test changes behind its back.
struct TamperedHome {
    let home: String
    var database: String { home + "/keychain.db" }
    var log: String { database + "-wal" }

    /// Runs `body` with a new one.
    static func with<Result>(_ body: (TamperedHome) throws -> Result) throws -> Result {
        try withTemporaryDirectory(inMemory: true) { directory in try body(TamperedHome(home: directory + "/home")) }
    }

    /// Opens the keychain, runs `body`, and closes it, which empties the -wal file.
    func use(_ body: (LocalKeychain) throws -> Void) throws {
        try body(LocalKeychain(home: home))
    }

    func add(_ accounts: ClosedRange<Int>) throws {
        try use { keychain in for number in accounts { try keychain.addItem("account \(number)", "secret \(number)") } }
    }

    /// Adds items in a process that is killed, so that they are in the -wal file only.
    func addInKilledProcess(from start: Int, count: Int) throws {
        let child = try ChildProcess(
            BuiltProgram.path(of: "KeychainTestChild"), ["sets-until-killed", "\(start)"], environment: ["KEYCHAIN_HOME": home])
        for index in start..<(start + count) {
            while let line = try child.readLine(), line != "ack \(index)" {}
        }
        child.send(signal: SIGKILL)
        _ = try child.waitUntilEnded()
    }

    /// Empties the -wal file, which would hide changes of the database.
    ///
    /// Closing the keychain does that only if no other connection is open. While keys are in the memory of this process, the thread that removes expired
    /// ones has one.
    func emptyLog() throws {
        let isEmpty = try waitUntil {
            guard let status = try FileStatus.ifPresent(at: log), status.byteCount > 0 else { return true }
            // Has no effect while the thread reads.
            try RawDatabase(database).execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return false
        }
        #expect(isEmpty)
    }

    /// Copies the content of a file of the closed keychain.
    func copy(_ source: String, to destination: String) throws {
        try inLaterTick { try Data(contentsOf: URL(filePath: source)).write(to: URL(filePath: destination)) }
    }

    /// Runs `body`, and then puts the content of the anchor back, as if the process had been killed between its commit and the anchor.
    func withoutAnchor(_ body: () throws -> Void) throws {
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: home + "/keys").first { $0.hasSuffix(".anchor") })
        let anchor = URL(filePath: home + "/keys/" + name)
        let before = try Data(contentsOf: anchor)
        try body()
        let file = try FileHandle(forWritingTo: anchor)
        try file.write(contentsOf: before)
        try file.close()
    }

    func removeLog() throws { try FileManager.default.removeItem(atPath: log) }

    /// Runs SQL; tables of `side` are in another file.
    func edit(_ sql: String) throws {
        try inLaterTick { try RawDatabase(database).execute("ATTACH '\(home)/side' AS side; \(sql)") }
    }

    /// Runs `change`, and changes the metadata of the database until its change time differs from the one before.
    ///
    /// Changes within one tick of the kernel's clock have the same time.
    private func inLaterTick(_ change: () throws -> Void) throws {
        let before = try FileStatus(of: database).changeNanoseconds
        try change()
        try waitUntil {
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: database)
            return try FileStatus(of: database).changeNanoseconds != before
        }
    }

    /// The problem that opening reports; nil if the keychain opens.
    ///
    /// Reads and writes are refused alike, and nothing is changed by the attempt.
    func problem() throws -> StateProblem? {
        var problems: [StateProblem?] = []
        for operation in ["report", "read", "write"] {
            do throws(KeychainFailure) {
                try perform(operation)
                problems.append(nil)
            } catch {
                guard case .unexpectedState(let problem)? = error.cause else { throw error }
                #expect(error.status == .notAvailable && error.isDamage)
                problems.append(problem)
            }
        }
        #expect(Set(problems).count == 1, "\(problems)")
        return problems.last ?? nil
    }

    private func perform(_ operation: String) throws(KeychainFailure) {
        let keychain = LocalKeychain(home: home)
        switch operation {
        case "report": _ = try keychain.report()
        case "read": _ = try keychain.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword)))
        default:
            try keychain.addItem("attempt", "secret")
            try keychain.deleteItem("attempt")
        }
    }

    func contains(_ number: Int, _ keychain: LocalKeychain) throws(KeychainFailure) -> Bool {
        do throws(KeychainFailure) {
            _ = try keychain.secret(of: "account \(number)")
            return true
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return false
        }
    }

    /// Accepts the content, and expects that the keychain can be used from then on.
    func accept(keybag: Bool = false) throws {
        let keychain = LocalKeychain(home: home)
        #expect(try keychain.acceptContent(applying: false)?.isKeybagReplaced == keybag)
        #expect(try problem() != nil)
        #expect(try keychain.acceptContent(applying: true, acceptingKeybag: keybag) != nil)
        #expect(try keychain.acceptContent(applying: false) == nil)
        try LocalKeychain(home: home).addItem("after acceptance", "secret")
        #expect(try LocalKeychain(home: home).secret(of: "after acceptance") == "secret")
        #expect(try problem() == nil)
        let report = try LocalKeychain(home: home).verify(purgingQuarantine: false)
        #expect(report.structuralProblems.isEmpty, "\(report.structuralProblems)")
    }
}
