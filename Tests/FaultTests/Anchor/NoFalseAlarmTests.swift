// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// A keychain that only its own processes use is never refused: each false alarm would lock a person out.
@Suite("The stored state matches the rows after any mix of operations", .blocking)
struct NoFalseAlarmTests {
    private enum Step: CaseIterable {
        case add, update, delete, addOnThreads, failOnThreads, setPasscode, changePasscode, removePasscode, lock, backUp, restore
        case damageAndReplace, purge, snapshot, kill, createRecoveryKey, closeAndOpen
    }

    /// The keychain under test, and what is needed to go on.
    private struct Run {
        let home: String
        var random: SeededRandom
        var passcode: String?
        var accounts: [String] = []
        var number = 0
        var backups: [String] = []

        func keychain() throws -> LocalKeychain {
            let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
            if let passcode { try keychain.unlock(with: passcode) }
            return keychain
        }
    }

    @Test("Reopening raises no alarm, and the rows match the state", arguments: Scale.pick(1, full: 20).seeds)
    func neverAlarmed(seed: UInt64) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            var run = Run(home: home, random: SeededRandom(seed: seed))
            try LocalKeychain(home: home).addItem("first", "secret")
            // Some steps run on a keychain that stays open, beside others.
            let longLived = LocalKeychain(home: home)
            for round in 0..<Scale.pick(30, full: 300) {
                let step = try #require(Step.allCases.randomElement(using: &run.random))
                do {
                    try Self.perform(step, directory: directory, &run)
                    if round % 5 == 0 {
                        run.number += 1
                        try? longLived.addItem("long-lived \(run.number)", "secret")
                    }
                } catch {
                    Issue.record("seed \(seed), round \(round), \(step): \(error)")
                    return
                }
                let problems = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory).verify(purgingQuarantine: false)
                    .structuralProblems
                guard problems.isEmpty else {
                    Issue.record("seed \(seed), round \(round), after \(step): \(problems)")
                    return
                }
            }
        }
    }

    private static func unlessMissing(_ body: () throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        do throws(KeychainFailure) { try body() } catch  where error.status == .itemNotFound {}
    }

    private static func perform(_ step: Step, directory: String, _ run: inout Run) throws {
        let keychain = try run.keychain()
        switch step {
        case .add:
            run.number += 1
            let account = "account \(run.number)"
            try keychain.addItem(account, String(repeating: "x", count: Int.random(in: 0..<9_000, using: &run.random)))
            run.accounts.append(account)
        case .update:
            guard let account = run.accounts.randomElement(using: &run.random) else { return }
            // A step may have removed it by setting it aside.
            try Self.unlessMissing { () throws(KeychainFailure) in try keychain.updateItem(account, to: "new \(run.number)") }
        case .delete:
            guard let index = run.accounts.indices.randomElement(using: &run.random) else { return }
            let account = run.accounts.remove(at: index)
            try Self.unlessMissing { () throws(KeychainFailure) in try keychain.deleteItem(account) }
        case .addOnThreads, .failOnThreads:
            // Half of the writes in a group fail, if they are to: the accounts are taken.
            let first = run.number
            run.number += 16
            if step == .failOnThreads { for number in 1...4 { try keychain.addItem("thread \(first + number)", "secret") } }
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                for number in [thread, thread + 8] { try? keychain.addItem("thread \(first + number)", "secret") }
            }
        case .setPasscode:
            guard run.passcode == nil else { return }
            try keychain.set("swordfish")
            run.passcode = "swordfish"
        case .changePasscode:
            guard let old = run.passcode else { return }
            let new = old == "swordfish" ? "12345" : "swordfish"
            try keychain.changePasscode(
                from: Passcode(text: old), to: Passcode(text: new), rotatingKeys: Bool.random(using: &run.random), autoLock: .standard)
            run.passcode = new
        case .removePasscode:
            guard let passcode = run.passcode else { return }
            try keychain.removePasscode(Passcode(text: passcode), deleting: keychain.passcodeRemoval(Passcode(text: passcode)))
            run.passcode = nil
        case .lock: try? keychain.lock(.everything)
        case .backUp:
            let path = directory + "/backup \(run.number) \(run.backups.count)"
            _ = try keychain.createBackup(atPath: path, password: Passcode(text: "a password"), replacing: true)
            run.backups.append(path)
        case .restore:
            guard let path = run.backups.randomElement(using: &run.random) else { return }
            _ = try keychain.restoreBackup(atPath: path, password: Passcode(text: "a password"), dryRun: false)
        case .damageAndReplace:
            run.number += 1
            let account = "damaged \(run.number)"
            try keychain.addItem(account, "lost")
            // The tag stays, so the state does not notice: the row itself is damaged.
            try RawDatabase(run.home + "/keychain.db").execute(
                "UPDATE items SET sealed_attributes = zeroblob(length(sealed_attributes)) WHERE number = (SELECT max(number) FROM items)")
            try? keychain.deleteItem(account)
            _ = try? keychain.restoreBackup(atPath: run.backups.last ?? "", password: Passcode(text: "a password"), dryRun: false)
            try? keychain.addItem("replaced \(run.number)", "secret")
        case .purge: _ = try keychain.verify(purgingQuarantine: true)
        case .snapshot: try keychain.snapshot(toPath: directory + "/snapshot", replacing: true)
        case .createRecoveryKey:
            if let passcode = run.passcode {
                _ = try keychain.createRecoveryKey(passcode: Passcode(text: passcode), replacing: true)
            } else {
                _ = try keychain.createRecoveryKey(passcode: nil, replacing: true)
            }
        case .kill:
            guard run.passcode == nil else { return }
            let child = try ChildProcess(
                BuiltProgram.path(of: "KeychainTestChild"), ["sets-until-killed", "\(run.number)"],
                environment: ["KEYCHAIN_HOME": run.home])
            run.number += 1_000
            for _ in 0..<Int.random(in: 1...4, using: &run.random) { _ = try child.readLine() }
            child.send(signal: SIGKILL)
            _ = try child.waitUntilEnded()
        case .closeAndOpen: break
        }
    }
}

/// A generator whose numbers a seed determines (SplitMix64).
private struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

extension Int {
    /// As many random seeds.
    fileprivate var seeds: [UInt64] { (0..<self).map { _ in .random(in: 0..<1_000_000_000) } }
}
