// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// An operation that must be all or nothing, whenever the process that does it is killed.
protocol KillScenario: Sendable {
    /// What a `SessionProcess` is asked for.
    var request: String { get }

    /// What the process finds in its environment, beside the keychain's home.
    func environment(home: String) -> [String: String]

    /// The calls of the system that it is killed at.
    var systemCalls: [String] { get }

    /// Makes the keychain below `home` on which the operation is to be done, and closes it.
    func prepare(home: String) throws

    /// Records an issue unless the operation was done wholly or not at all, and can be done or finished now.
    func check(home: String, _ comment: Comment) throws -> KillOutcome
}

extension KillScenario {
    func environment(home: String) -> [String: String] { [:] }

    /// What commits, and what takes a transaction back after a kill, is made of these.
    var systemCalls: [String] { ["pwrite64", "fdatasync", "ftruncate"] }
}

enum KillOutcome {
    case nothingDone, done
}

/// Does an operation again and again, each time on a copy of the same keychain, and kills the process in the midst of it.
///
/// Two kinds of moments: points of time, spread over as long as the operation takes when nobody disturbs it, and calls of the
/// system that change files, at the very beginning of each.
struct KillHarness {
    let scenario: any KillScenario

    struct Tally {
        var killCount = 0
        var outcomes: [KillOutcome: Int] = [:]
        /// How many of the kills were at a call of the system.
        var callCount = 0
    }

    /// Kills at so many points of time, the first before the operation has begun and the last when it has been answered; and at up
    /// to so many calls.
    func run(pointCount: Int, callCount: Int) throws -> Tally {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = Place(directory: directory)
            try FileManager.default.createDirectory(
                atPath: place.home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try scenario.prepare(home: place.home)
            try FileManager.default.moveItem(atPath: place.home, toPath: place.original)
            var tally = Tally()
            try killAtRandomTimes(pointCount, in: place, &tally)
            if FlushTrace.obstacle == nil { try killAtSystemCalls(callCount, in: place, &tally) }
            try place.removeHeldKeys()
            return tally
        }
    }

    /// The same path in every round: a key file names the store that it belongs to.
    private struct Place {
        let directory: String
        var home: String { directory + "/home" }
        var original: String { directory + "/original" }
        var log: String { directory + "/log" }

        func restore() throws {
            if FileManager.default.fileExists(atPath: home) {
                try removeHeldKeys()
                try FileManager.default.removeItem(atPath: home)
            }
            try FileManager.default.copyItem(atPath: original, toPath: home)
        }

        func removeHeldKeys() throws {
            try OpenedStore.removeAllHeldKeys(home: home)
        }
    }

    private func killAtRandomTimes(_ count: Int, in place: Place, _ tally: inout Tally) throws {
        var longest = Duration.zero
        for _ in 0..<2 {
            try place.restore()
            let process = try SessionProcess(home: place.home, environment: scenario.environment(home: place.home))
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try process.ask(scenario.request).status == 0)
            longest = max(longest, clock.now - start)
        }
        for round in 0..<count {
            try place.restore()
            let process = try SessionProcess(home: place.home, environment: scenario.environment(home: place.home))
            if round > 0 { process.send(scenario.request) }
            var hadAnswered = false
            if round == count - 1 {
                hadAnswered = try process.answer().status == 0
            } else {
                let microseconds = Double.random(in: 0..<1) + Double(round)
                usleep(UInt32(microseconds / Double(count) * (longest / .microseconds(1))))
            }
            hadAnswered = try process.kill() || hadAnswered
            try note("killed after \(round)/\(count) of its time", hadAnswered: hadAnswered, in: place, &tally)
        }
    }

    private func killAtSystemCalls(_ count: Int, in place: Place, _ tally: inout Tally) throws {
        // Counted as strace counts, from one, among all calls of that name.
        var positions: [(call: String, position: Int)] = []
        for call in scenario.systemCalls {
            try place.restore()
            let process = try traced(call, nil, in: place)
            #expect(try process.ask(scenario.request).status == 0)
            try process.end()
            let lines = try String(contentsOfFile: place.log, encoding: .utf8).split(separator: "\n").filter { $0.contains("\(call)(") }
            positions += lines.indices.map { (call, $0 + 1) }
        }
        // Spread over all of them, the first and the last included.
        let chosen =
            positions.count <= count
            ? Array(positions.indices) : (0..<count).map { $0 * (positions.count - 1) / max(1, count - 1) }
        for (call, position) in chosen.map({ positions[$0] }) {
            try place.restore()
            let process = try traced(call, "signal=KILL:when=\(position)", in: place)
            process.send(scenario.request)
            let hadAnswered = (try? process.answer()) != nil
            try process.end()
            guard !hadAnswered else { continue }
            tally.callCount += 1
            try note("killed at \(call) \(position)", hadAnswered: false, in: place, &tally)
        }
    }

    private func traced(_ call: String, _ injection: String?, in place: Place) throws -> SessionProcess {
        let injecting = injection.map { ["-e", "inject=\(call):\($0)"] } ?? []
        return try SessionProcess(
            home: place.home, under: ["strace", "-f", "-y", "-s", "0", "-o", place.log, "-e", "trace=\(call)"] + injecting,
            environment: scenario.environment(home: place.home))
    }

    private func note(_ moment: String, hadAnswered: Bool, in place: Place, _ tally: inout Tally) throws {
        let comment: Comment = "\(scenario.request), \(moment)"
        let outcome = try scenario.check(home: place.home, comment)
        #expect(outcome == .done || !hadAnswered, "it had said that it was done; \(comment)")
        tally.killCount += 1
        tally.outcomes[outcome, default: 0] += 1
    }
}
