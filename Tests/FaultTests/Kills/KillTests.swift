// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing
import Valet

@Suite("Acknowledged writes of a killed process are durable", .blocking)
struct KillTests {
    private let roundCount = Scale.pick(6, full: 1_000)

    @Test("After repeated kills at random moments, every acknowledged write is present")
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
                // The unacknowledged write may be present or not; the next round repeats it.
                next = acknowledged + 1
            }
            try Self.expect(acknowledgedUpTo: next - 1, from: 0, home: home, "seed \(seed), at the end")
            #expect(next > 0, "no round got as far as an acknowledgement")
        }
    }

    @Test("After repeated kills, a synchronized store has every acknowledged write, and records of exactly the writes that it has")
    func recordsMatchWrites() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("first", "of the store")
            try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.start() }
            var acknowledgedCount = 0
            for round in 0..<roundCount {
                let child = try ChildProcess(
                    program, ["synchronized-sets-until-killed", "\(round * 5)"], environment: ["KEYCHAIN_HOME": home])
                for _ in 0..<Int.random(in: 0...6, using: &generator) { _ = try child.readLine() }
                usleep(UInt32.random(in: 0...3_000, using: &generator))
                child.send(signal: SIGKILL)
                let rest = try child.readToEnd()
                #expect(try child.waitUntilEnded() == .killed(bySignal: SIGKILL), "seed \(seed), round \(round): \(rest)")
                let lines = child.linesRead + rest.split(separator: "\n").map(String.init)
                acknowledgedCount += lines.count
                try Self.expectLast(of: lines, home: home, "seed \(seed), round \(round)")
                let objections = try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.objections() }
                #expect(objections == [], "seed \(seed), round \(round)")
            }
            #expect(acknowledgedCount > 0, "no round got as far as an acknowledgement")
            // The audit finds a record that is missing.
            try CurrentKeychain.with(keychain) {
                let valet = Valet.iCloudValet(with: try #require(Identifier(nonEmpty: "child")), accessibility: .whenUnlocked)
                try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.synchronize() }
                try valet.setString("another value", forKey: "item 1")
                let objections = try RecordAudit.with(keychain) { audit throws(KeychainFailure) in
                    try audit.loseRecords()
                    return try audit.objections()
                }
                #expect(objections.count == 1)
            }
        }
    }

    /// Expects the last acknowledged write of `synchronized-sets-until-killed`, and the one before it.
    private static func expectLast(of lines: [String], home: String, _ comment: Comment) throws {
        guard let last = try acknowledged(lines), let identifier = Identifier(nonEmpty: "child") else { return }
        try CurrentKeychain.with(LocalKeychain(home: home)) {
            let valet = Valet.iCloudValet(with: identifier, accessibility: .whenUnlocked)
            for index in last + 1 - min(lines.count, 2)...last {
                let key = "item \(index % 10)"
                guard try valet.containsObject(forKey: key) else {
                    #expect(index % 3 == 0, comment)
                    continue
                }
                // The removal that follows may not have been reached.
                #expect(index % 3 != 0 || index == last, comment)
                #expect(try valet.string(forKey: key) == "value \(index)", comment)
            }
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

@Suite("Changes of passcode and keys are atomic when killed", .blocking)
struct LockKillTests {
    /// At full scale more than 200 kills at points of time alone, over all operations.
    private static let pointCount = Scale.pick(2, full: 42)

    @Test(
        "After a kill at any moment, every item is readable with the old or the new passcode, and the change can be completed",
        arguments: PasscodeOperation.allCases)
    func killed(_ operation: PasscodeOperation) throws {
        try expectAtomic(operation)
    }

    @Test("A restore that is killed has restored every item of the backup, or none")
    func killedRestore() throws {
        try expectAtomic(RestoreOperation())
    }

    @Test("A migration that is killed has moved every value, or none, and can be done again")
    func killedMigration() throws {
        try expectAtomic(MigrationOperation())
    }

    private struct MigrationOperation: KillScenario {
        private static let keys = Set((1...10).map { "key \($0)" })

        var request: String { "migrate" }

        func prepare(home: String) throws {
            try CurrentKeychain.with(LocalKeychain(home: home)) {
                for key in Self.keys { try Self.valet("source").setString("value of \(key)", forKey: key) }
            }
        }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            try CurrentKeychain.with(LocalKeychain(home: home)) {
                let (source, destination) = (Self.valet("source"), Self.valet("destination"))
                let isDone = try destination.allKeys() == Self.keys
                #expect(try source.allKeys() == (isDone ? [] : Self.keys), comment)
                #expect(try isDone || destination.allKeys().isEmpty, comment)
                if !isDone { try destination.migrateObjects(from: source, removeOnCompletion: true) }
                for key in Self.keys { #expect(try destination.string(forKey: key) == "value of \(key)", comment) }
                return isDone ? .done : .nothingDone
            }
        }

        private static func valet(_ identifier: Identifier) -> Valet { Valet.valet(with: identifier, accessibility: .whenUnlocked) }
    }

    @Test("A stop of synchronization that is killed leaves the whole ledger, or none, and can be done again")
    func killedStop() throws {
        try expectAtomic(StopOfSynchronization())
    }

    private struct StopOfSynchronization: KillScenario {
        private static let keys = Set((1...10).map { "key \($0)" })

        var request: String { "stop-synchronizing" }

        func prepare(home: String) throws {
            let keychain = LocalKeychain(home: home)
            try CurrentKeychain.with(keychain) {
                for key in Self.keys { try Self.valet.setString("value of \(key)", forKey: key) }
            }
            try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.start() }
            _ = try keychain.makeDeviceKeys()
        }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            let keychain = LocalKeychain(home: home)
            let isDone = try !keychain.isSynchronizing()
            if !isDone {
                #expect(try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.objections() } == [], comment)
                try keychain.stopSynchronizing()
                #expect(try !keychain.isSynchronizing(), comment)
            }
            #expect(throws: KeychainFailure(.itemNotFound, ""), comment) { try keychain.deviceKeys() }
            try CurrentKeychain.with(keychain) {
                let valet = Self.valet
                for key in Self.keys {
                    let value = try valet.string(forKey: key)
                    #expect(value == "value of \(key)", comment)
                }
            }
            #expect(try keychain.verify(purgingQuarantine: false).isSound, comment)
            return isDone ? .done : .nothingDone
        }

        private static var valet: Valet { Valet.iCloudValet(with: "shared", accessibility: .whenUnlocked) }
    }

    private func expectAtomic(_ scenario: any KillScenario) throws {
        let tally = try KillHarness(scenario: scenario).run(pointCount: Self.pointCount, callCount: Scale.pick(3, full: 14))
        #expect(tally.killCount >= Self.pointCount)
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }

    @Test(
        "The harness detects an operation that is not atomic",
        .requiresStrace)
    func plantedFault() throws {
        let scenario = NonAtomicOperation()
        _ = try KillHarness(scenario: scenario).run(pointCount: 0, callCount: .max)
        #expect(scenario.halfDoneCount.load(ordering: .relaxed) > 0)
    }

    /// An operation of two transactions, between which a kill can come.
    private final class NonAtomicOperation: KillScenario {
        let halfDoneCount = Atomic(0)

        var request: String { "add-pair" }

        func prepare(home: String) throws {
            try LocalKeychain.withCheapPasscode(home: home).addItem("first", "there")
        }

        func check(home: String, _ comment: Comment) throws -> KillOutcome {
            let count = try LocalKeychain(home: home).secrets().count
            if count == 2 { halfDoneCount.add(1, ordering: .relaxed) }
            return count == 3 ? .done : .nothingDone
        }
    }
}

@Suite("Moves to another protector are atomic when killed", .blocking)
struct ProtectorKillTests {
    private static let withoutChip: [ProtectorOperation] = [
        ProtectorOperation(origin: .keyFile, target: .systemdCredential, passcode: nil),
        ProtectorOperation(origin: .systemdCredential, target: .keyFile, passcode: nil),
        ProtectorOperation(origin: .keyFile, target: .systemdCredential, passcode: "Druidia"),
        ProtectorOperation(origin: .systemdCredential, target: .keyFile, passcode: "Druidia"),
    ]

    @Test(
        "After a kill at any moment, every item is readable, and the move can be completed",
        arguments: Scale.pick([withoutChip[2]], full: withoutChip))
    func killed(_ operation: ProtectorOperation) throws {
        try expectAtomic(operation)
    }

    @Test(
        "After a kill during a move to or from a TPM, every item is readable, and the move can be completed",
        .requiresTPM,
        arguments: [(DeviceProtectorKind.keyFile, DeviceProtectorKind.tpm2), (.tpm2, .keyFile)])
    func killedWithChip(_ origin: DeviceProtectorKind, _ target: DeviceProtectorKind) throws {
        let chip = try SoftwareTPM()
        try chip.setLockout(afterTries: 1_000, recoverySeconds: 10)
        try expectAtomic(ProtectorOperation(origin: origin, target: target, passcode: "Druidia", tcti: chip.tcti))
    }

    @Test("A recovery that is killed can be repeated, and keeps the unusable key file")
    func killedRecovery() throws {
        try expectAtomic(RecoveryOperation())
    }

    private func expectAtomic(_ operation: any KillScenario) throws {
        let tally = try KillHarness(scenario: operation).run(pointCount: Scale.pick(2, full: 12), callCount: Scale.pick(4, full: 20))
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }
}
