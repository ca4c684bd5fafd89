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
            let count = Scale.pick(40, full: 400)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "KeychainTestChild"), ["forks", String(count)],
                environment: ["KEYCHAIN_HOME": home + "/home", "KEYCHAIN_PINENTRY": ""], withinSeconds: 600)
            // The output contains the log of the parent too.
            let statuses = run.output.split(separator: "\n").filter { Int($0) != nil }
            #expect(statuses == Array(repeating: "0", count: count), "\(run.output.suffix(400))")
        }
    }
}
