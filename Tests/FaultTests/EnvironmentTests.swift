// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Testing

@Suite("An environment that leads nowhere")
struct EnvironmentTests {
    private func attempt(_ environment: [String: String]) throws -> [Substring] {
        let run = try ChildProcess.run(BuiltProgram.path(of: "KeychainTestChild"), ["attempt", "add", "read"], environment: environment)
        #expect(run.ending == .exited(0))
        return run.output.split(separator: "\n")
    }

    @Test("Without a home, every call fails and says what to set", arguments: [[:], ["HOME": ""], ["HOME": "relative"]])
    func noHome(_ environment: [String: String]) throws {
        for line in try attempt(environment) {
            #expect(line.hasPrefix("-25291 ") && line.contains("KEYCHAIN_HOME"))
        }
    }

    @Test("A relative KEYCHAIN_HOME is refused, whatever else is set")
    func relativeHome() throws {
        try withTemporaryDirectory { directory in
            for line in try attempt(["KEYCHAIN_HOME": "keychain", "HOME": directory]) {
                #expect(line.hasPrefix("-50 ") && line.contains("KEYCHAIN_HOME must be an absolute path"))
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("An unknown KEYCHAIN_PROTECTOR is refused, with the names that are known")
    func unknownProtector() throws {
        try withTemporaryDirectory { directory in
            for line in try attempt(["KEYCHAIN_HOME": directory + "/home", "KEYCHAIN_PROTECTOR": "magic"]) {
                #expect(line.hasPrefix("-50 ") && line.contains("keyFile") && line.contains("systemdCredential"))
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("A home that is a file is refused, and left as it is")
    func homeIsAFile() throws {
        try withTemporaryDirectory { directory in
            try Data("a file".utf8).write(to: URL(filePath: directory + "/home"))
            let before = try FileSnapshot(of: directory)
            let answers = try attempt(["KEYCHAIN_HOME": directory + "/home"])
            #expect(answers.count == 2)
            for line in answers { #expect(line.hasPrefix("-25291 ") && line.contains(directory + "/home")) }
            #expect(try FileSnapshot(of: directory) == before)
        }
    }
}
