// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Reads during locks and unlocks by another process", .blocking)
struct LockCycleTests {
    /// Reads a child's tally: how often each operation returned each status.
    private static func tally(_ process: ChildProcess) throws -> [String: Int] {
        var tally: [String: Int] = [:]
        while let line = try process.readLine(withinSeconds: 300), line != "end" {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let count = Int(parts[0]) else { continue }
            tally[String(parts[1])] = count
        }
        return tally
    }

    @Test(
        "Eight processes that read while another one locks and unlocks see success or 'locked', and nothing else",
        .requiresKernelKeyring)
    func eightReaders() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set("swordfish")
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let environment = ["KEYCHAIN_HOME": home]
            let readers = try (0..<8).map { _ in
                try ChildProcess(program, ["reads-until-told-to-end", "ak", "ck"], environment: environment)
            }
            for reader in readers { #expect(try reader.readLine() == "ready") }

            let cycleCount = Scale.pick(20, full: 1_000)
            let locker = try ChildProcess(program, ["lock-cycles", String(cycleCount), "swordfish"], environment: environment)
            #expect(try Self.tally(locker) == ["lock 0": cycleCount, "unlock 0": cycleCount])
            for reader in readers {
                reader.closeInput()
                let tally = try Self.tally(reader)
                #expect(Set(tally.keys) == ["ak 0", "ak -25308", "ck 0"], "\(tally)")
                #expect(try reader.waitUntilEnded() == .exited(0))
            }
        }
    }

    @Test(
        "Processes that read during changes of keys and passcode never find the unlocked keychain locked",
        .requiresKernelKeyring)
    func readersDuringChanges() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set("swordfish")
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let readers = try (0..<4).map { _ in
                try ChildProcess(program, ["reads-until-told-to-end", "ak", "ck", "state"], environment: ["KEYCHAIN_HOME": home])
            }
            for reader in readers { #expect(try reader.readLine() == "ready") }
            let changer = try SessionProcess(home: home)
            for round in 0..<Scale.pick(4, full: 100) {
                let change = ["rotate swordfish swordfish", "change swordfish swordfish", "unlock swordfish", "remove swordfish"][round % 4]
                #expect(try changer.status(of: change) == .success)
                if round % 4 == 3 { #expect(try changer.status(of: "set swordfish") == .success) }
                #expect(try changer.ask("state").text == "unlocked", "after \(change)")
            }
            for reader in readers {
                reader.closeInput()
                let tally = try Self.tally(reader)
                #expect(Set(tally.keys) == ["ak 0", "ck 0", "state 0"], "\(tally)")
                #expect(try reader.waitUntilEnded() == .exited(0))
            }
        }
    }

    @Test(
        "Another process sees each lock and unlock, and each change of the passcode, at its next call",
        .requiresKernelKeyring)
    func nextCall() throws {
        try withLocalKeychain { keychain, home in
            let (one, other) = (try SessionProcess(home: home), try SessionProcess(home: home))
            try keychain.addItem("kept", "secret of kept")
            for process in [one, other] { #expect(try process.status(of: "read kept") == .success) }
            #expect(try one.status(of: "set swordfish") == .success)
            #expect(try other.ask("read kept") == SessionProcess.Answer(status: 0, text: "secret of kept"))
            for (actor, observer) in [(one, other), (other, one), (one, other)] {
                #expect(try actor.status(of: "lock") == .success)
                #expect(try observer.status(of: "read kept") == .interactionNotAllowed)
                #expect(try observer.ask("state").text == "locked")
                #expect(try observer.status(of: "add new ak") == .interactionNotAllowed)
                #expect(try actor.status(of: "unlock swordfish") == .success)
                #expect(try observer.status(of: "read kept") == .success)
                #expect(try observer.ask("state").text == "unlocked")
                #expect(try actor.status(of: "lock-all") == .success)
                #expect(try observer.ask("state").text == "neverUnlocked")
                #expect(try observer.status(of: "read kept") == .interactionNotAllowed)
                #expect(try observer.status(of: "unlock swordfish") == .success)
                #expect(try actor.status(of: "read kept") == .success)
            }
            #expect(try one.status(of: "rotate swordfish 12345") == .success)
            #expect(try other.status(of: "read kept") == .success)
            #expect(try other.status(of: "unlock swordfish") == .authFailed)
            #expect(try other.status(of: "remove 12345") == .success)
            #expect(try one.status(of: "read kept") == .success)
            #expect(try one.ask("state").text == "unlocked")
        }
    }
}

@Suite("Two processes change the passcode at the same time", .blocking)
struct SimultaneousChangeTests {
    @Test(
        "At least one succeeds, and the keychain is unlocked for every process afterwards", .requiresKernelKeyring,
        arguments: ["change", "rotate"])
    func concurrentPasscodeChanges(operation: String) throws {
        try withLocalKeychain(holder: .automatic) { keychain, home in
            try keychain.set("start")
            try keychain.addItem("item", "secret of item", .whenUnlocked)
            let processes = [try SessionProcess(home: home), try SessionProcess(home: home)]
            var passcode = "start"
            for round in 0..<Scale.pick(2, full: 25) {
                let candidates = ["left \(round)", "right \(round)"].map { $0.replacing(" ", with: "-") }
                for (process, candidate) in zip(processes, candidates) { process.send("\(operation) \(passcode) \(candidate)") }
                let statuses = try processes.map { KeychainStatus(rawValue: try $0.answer().status) }
                // The slower process finds that the passcode has changed.
                let winners = zip(candidates, statuses).filter { $0.1 == .success }.map(\.0)
                #expect(!winners.isEmpty && statuses.allSatisfy { $0 == .success || $0 == .authFailed }, "\(statuses)")
                #expect(try keychain.sessionStatus().state == .unlocked, "round \(round)")
                #expect(try keychain.secret(of: "item") == "secret of item")
                passcode = try #require(winners.last)
            }
        }
    }
}
