// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainTestSupport
import Testing

/// ValetTests has the tests of one process.
@Suite("Processes renew an expired credential", .blocking)
struct RefreshTests {
    private struct Processes {
        let directory: String
        let log: String

        init(in directory: String) throws {
            self.directory = directory
            log = directory + "/log"
            try Data().write(to: URL(filePath: log))
            let stored = try start("store-expired-token")
            #expect(try stored.readLine() == "stored")
            #expect(try stored.waitUntilEnded() == .exited(0))
        }

        func start(_ arguments: String...) throws -> ChildProcess {
            try ChildProcess(
                try BuiltProgram.path(of: "KeychainTestChild"), arguments,
                environment: ["KEYCHAIN_HOME": directory + "/home", "KEYCHAIN_PINENTRY": ""])
        }

        /// Starts so many processes of four tasks, all at once.
        func refresh(processes: Int, timeoutSeconds: Int) throws -> [ChildProcess] {
            let children = try (0..<processes).map { _ in try start("refresh-token", "4", "\(timeoutSeconds)", log) }
            for child in children { #expect(try child.readLine() == "ready") }
            for child in children { child.send("go") }
            return children
        }

        /// The names of the tasks that have renewed.
        func renewals() throws -> [String] {
            try String(contentsOf: URL(filePath: log), encoding: .utf8).split(separator: "\n").map(String.init)
        }
    }

    @Test("Eight processes of four tasks: one renewal, and thirty-two equal results")
    func oneRenewal() throws {
        try withTemporaryDirectory { directory in
            let processes = try Processes(in: directory)
            let outputs = try processes.refresh(processes: 8, timeoutSeconds: 60).map { try $0.readToEnd() }
            let renewals = try processes.renewals()
            try #require(renewals.count == 1, "\(renewals)")
            let results = outputs.flatMap { $0.split(separator: "\n") }
            #expect(results.map(String.init) == Array(repeating: "token \(renewals[0])", count: 32))
        }
    }

    @Test("The renewing process is killed: another one takes over after the time of the renewal")
    func takenOver() throws {
        try withTemporaryDirectory { directory in
            let processes = try Processes(in: directory)
            let killed = try processes.start("refresh-token", "1", "2", "hang")
            #expect(try killed.readLine() == "ready")
            killed.send("go")
            #expect(try killed.readLine() == "renewing")
            // The others would wait ten minutes for a renewal of their own, and the lines below only one.
            let others = try processes.refresh(processes: 2, timeoutSeconds: 600)
            killed.send(signal: SIGKILL)
            let results = try others.flatMap { try $0.readToEnd().split(separator: "\n").map(String.init) }
            let renewals = try processes.renewals()
            try #require(renewals.count == 1, "\(renewals)")
            #expect(results == Array(repeating: "token \(renewals[0])", count: 8))
        }
    }
}
