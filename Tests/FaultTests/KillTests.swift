// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing
import Valet

@Suite("A process that is killed loses nothing it was told is stored")
struct KillTests {
    /// `KILL_ROUNDS=1000 swift test --filter KillTests` takes more.
    private let roundCount = ProcessInfo.processInfo.environment["KILL_ROUNDS"].flatMap { Int($0) } ?? 100

    @Test("Killed at random, round after round on one keychain, every acknowledged write is there")
    func acknowledgedWritesSurvive() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            var next = 0
            for round in 0..<roundCount {
                let child = try ChildProcess(program, ["sets-until-killed", String(next)], environment: ["KEYCHAIN_HOME": home])
                // Killed a moment after some acknowledgement, or before the first.
                for _ in 0..<Int.random(in: 0...4, using: &generator) { _ = try child.readLine() }
                usleep(UInt32.random(in: 0...3_000, using: &generator))
                child.send(signal: SIGKILL)
                let rest = try child.readToEnd()
                #expect(try child.waitUntilEnded() == .killed(bySignal: SIGKILL), "seed \(seed), round \(round): \(rest)")
                let acknowledged = try Self.acknowledged(child.linesRead + rest.split(separator: "\n").map(String.init)) ?? next - 1
                try Self.expect(acknowledgedUpTo: acknowledged, from: next, home: home, "seed \(seed), round \(round)")
                // The one that was being written may be there or not; the next round writes it again.
                next = acknowledged + 1
            }
            try Self.expect(acknowledgedUpTo: next - 1, from: 0, home: home, "seed \(seed), at the end")
            #expect(next > 0, "no round got as far as an acknowledgement")
        }
    }

    private static func acknowledged(_ lines: [String]) throws -> Int? {
        try lines.map { line in
            guard line.hasPrefix("ack "), let number = Int(line.dropFirst(4)) else { throw UnexpectedLine(line: line) }
            return number
        }.max()
    }

    private struct UnexpectedLine: Error {
        let line: String
    }

    private static func expect(acknowledgedUpTo last: Int, from first: Int, home: String, _ comment: Comment) throws {
        guard last >= first, let identifier = Identifier(nonEmpty: "child") else { return }
        try CurrentKeychain.with(LocalKeychain(home: home)) {
            let valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
            for index in first...last { #expect(try valet.string(forKey: "item \(index)") == "value \(index)", comment) }
            let counter = try Int(valet.string(forKey: "counter"))
            #expect(counter == last || counter == last + 1, comment)
        }
    }
}
