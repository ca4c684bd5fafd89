// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainTestSupport
import Testing

@Suite("Children that a program with several threads forks", .blocking)
struct ForkedProgramTests {
    @Test("Every call in a child is refused, and none crashes or hangs, whatever lock another thread held")
    func forks() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let count = Scale.pick(20, full: 400)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["forks", String(count)],
                environment: ["KEYCHAIN_HOME": home + "/home", "KEYCHAIN_PINENTRY": ""], withinSeconds: 600)
            // The output contains the log of the parent too.
            let statuses = run.output.split(separator: "\n").filter { Int($0) != nil }
            #expect(statuses == Array(repeating: "0", count: count), "\(run.output.suffix(400))")
        }
    }

    @Test("Calls of a child to an open store, and its attempts to open and create one, are refused")
    func store() throws {
        let directory = try TemporaryDirectory()
        let lines = try Self.linesOfChild("fork-with-store", directory.path + "/keychain.db")
        #expect(lines == ["0 refused before", "5 refused in the child", "0 refused after"])
    }

    @Test("Calls of a child to a key holder are refused, and the keys of the parent remain", arguments: ["processMemory", "automatic"])
    func keyHolder(selection: String) throws {
        let lines = try Self.linesOfChild("fork-with-key-holder", selection)
        #expect(lines == ["0 refused before", "3 refused in the child", "0 refused after", "held"])
    }

    private static func linesOfChild(_ arguments: String...) throws -> [Substring] {
        let run = try ChildProcess.run(BuiltProgram.path(of: "KeychainTestChild"), arguments, withinSeconds: 120)
        #expect(run.ending == .exited(0), "\(run.output)")
        return run.output.split(separator: "\n")
    }
}
