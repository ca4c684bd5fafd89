// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing
import Valet

@Suite("Many processes that make the same keychain at once")
struct CreationRaceTests {
    private let processCount = 8

    // On a disk the flushes spread the processes out; in memory they stay close together.
    @Test("Eight processes make one keychain with one key file, and every value is in it", arguments: [(50, false), (450, true)])
    func oneWinner(roundCount: Int, inMemory: Bool) throws {
        try withTemporaryDirectory(inMemory: inMemory) { directory in
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let children = try (0..<processCount).map { try ChildProcess(program, ["sets-on-request", "key \($0)"]) }
            for child in children { #expect(try child.readLine() == "ready") }
            for round in 0..<roundCount {
                let home = "\(directory)/\(round)"
                for child in children { child.send(home) }
                let answers = try children.map { try $0.readLine() }
                try #require(answers == Array(repeating: "done", count: processCount), "round \(round)")
                try expectOneKeychain(home, "round \(round)")
                try FileManager.default.removeItem(atPath: home)
            }
            for child in children {
                child.closeInput()
                #expect(try child.waitUntilEnded() == .exited(0))
            }
        }
    }

    private func expectOneKeychain(_ home: String, _ comment: Comment) throws {
        let identifier = try #require(Identifier(nonEmpty: "child"))
        let keychain = LocalKeychain(home: home)
        try CurrentKeychain.with(keychain) { () throws in
            let valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
            #expect(try valet.allKeys() == Set((0..<processCount).map { "key \($0)" }), comment)
            for number in 0..<processCount { #expect(try valet.string(forKey: "key \(number)") == "value of key \(number)", comment) }
        }
        let store = try #require(try keychain.report().store)
        // The children may still be closing, so the files of the log may be there or not.
        let names = try FileManager.default.subpathsOfDirectory(atPath: home).filter { !$0.hasPrefix("keychain.db-") }.sorted()
        #expect(names == ["keychain.db", "keys", "keys/\(store.id.hexadecimal).key"], comment)
    }
}
