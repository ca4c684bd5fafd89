// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// An operation that must be atomic, even if its process is killed at any moment.
protocol KillScenario: Sendable {
    /// The request to a `SessionProcess`.
    var request: String { get }

    /// Environment variables of the process besides the keychain's home.
    func environment(home: String) -> [String: String]

    /// The system calls at which it is killed.
    var systemCalls: [String] { get }

    /// Creates and closes the keychain for the operation.
    func prepare(home: String) throws

    /// Records an issue unless the operation was done completely or not at all, and can be done or completed now.
    func check(home: String, _ comment: Comment) throws -> KillOutcome
}

extension KillScenario {
    func environment(home: String) -> [String: String] { [:] }

    /// The calls that commit a transaction, and that roll it back after a kill.
    var systemCalls: [String] { ["pwrite64", "fdatasync", "ftruncate"] }
}

enum KillOutcome {
    case nothingDone, done
}

/// Repeats an operation, each time on a copy of the same keychain, and kills the process during it.
///
/// The kills come at points in time, spread over the duration of an undisturbed operation, and at the start of system calls that change
/// files.
struct KillHarness {
    let scenario: any KillScenario

    struct Tally {
        var killCount = 0
        var outcomes: [KillOutcome: Int] = [:]
        /// The number of kills at system calls.
        var callCount = 0
    }

    /// Kills at `pointCount` points in time and at up to `callCount` system calls.
    ///
    /// The first point is before the operation begins, the last after its answer.
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

    /// The directories, with the same path for the home in every round: a key file contains the path of its store.
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
        try place.restore()
        let process = try traced(scenario.systemCalls, nil, in: place)
        #expect(try process.ask(scenario.request).status == 0)
        try process.end()
        let lines = try String(contentsOfFile: place.log, encoding: .utf8).split(separator: "\n")
        // Counted as strace counts, from one, among all calls of that name.
        let positions = scenario.systemCalls.flatMap { call in
            lines.filter { $0.contains("\(call)(") }.indices.map { (call: call, position: $0 + 1) }
        }
        // Spread over all of them, the first and the last included.
        let chosen =
            positions.count <= count
            ? Array(positions.indices) : (0..<count).map { $0 * (positions.count - 1) / max(1, count - 1) }
        for (call, position) in chosen.map({ positions[$0] }) {
            try place.restore()
            let process = try traced([call], "\(call):signal=KILL:when=\(position)", in: place)
            process.send(scenario.request)
            let hadAnswered = (try? process.answer()) != nil
            try process.end()
            guard !hadAnswered else { continue }
            tally.callCount += 1
            try note("killed at \(call) \(position)", hadAnswered: false, in: place, &tally)
        }
    }

    private func traced(_ calls: [String], _ injection: String?, in place: Place) throws -> SessionProcess {
        let strace = ["strace", "-s", "0", "-o", place.log, "-e", "trace=\(calls.joined(separator: ","))"]
        return try SessionProcess(
            home: place.home, under: strace + FlushTrace.straceOptions(injecting: injection),
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
