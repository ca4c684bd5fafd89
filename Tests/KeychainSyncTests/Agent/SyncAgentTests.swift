// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// A machine with a keychain in a directory of its own.
private struct Machine {
    let home: String
    let keychain: LocalKeychain

    init(_ name: String, in directory: String) throws {
        home = directory + "/" + name
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
        try keychain.startSynchronizing()
    }

    /// Founds a circle.
    func found(_ name: String) throws {
        let keys = try keychain.makeDeviceKeys()
        let cipher = LocalKeychain.circleCipher
        let nonce = try cipher.randomBytes(32)
        let deviceName = try #require(DeviceName(name))
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            _ = try Membership.found(name: deviceName, keys: keys, nonce: nonce, cipher: cipher, in: ledger)
        }
    }

    /// Joins the circle of another machine, which admits this one.
    func join(_ owner: Machine, as name: String, _ role: DeviceRole = .owner) async throws {
        let keys = try keychain.makeDeviceKeys()
        let cipher = LocalKeychain.circleCipher
        try await owner.perform(.admit(keys.publicKeys, role))
        let (circle, statements) = try owner.keychain.readLedger { ledger throws(KeychainFailure) in
            (try Membership.stored(in: ledger)?.circle, try ledger.statements())
        }
        let membership = Membership(circle: try #require(circle), device: DeviceID(of: keys.publicKeys, role: role, cipher: cipher))
        let deviceName = try #require(DeviceName(name))
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            try membership.store(name: deviceName, statements: statements, in: ledger)
        }
    }

    /// Does what a person has asked for.
    func perform(_ command: SyncCommand) async throws {
        _ = try await EngineHost(keychain, clock: SystemClock()).step(.command(command))
    }

    func put(_ account: String, _ secret: String, _ accessibility: ItemAccessibility = .afterFirstUnlock) throws {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("test"), .synchronizable: .number(1)])
        do throws(KeychainFailure) {
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8),
                    accessControl: AccessControl(accessibility)))
        } catch {
            guard error.status == .duplicateItem else { throw error }
            try keychain.update(UpdateRequest(query: query(account), secret: Data(secret.utf8)))
        }
    }

    func delete(_ account: String) throws { try keychain.delete(DeleteRequest(query: query(account))) }

    func secret(_ account: String) throws -> String? {
        do throws(KeychainFailure) {
            let items = try keychain.copyMatching(MatchRequest(query: query(account), includesSecrets: true))
            return items.first?.secret.map { String(decoding: $0, as: UTF8.self) }
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }

    private func query(_ account: String) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account), .service: .string("test")]),
            synchronizability: .synchronizable)
    }
}

private struct SystemClock: WallClock {
    func now() -> Double { Date().timeIntervalSinceReferenceDate }
}

@Suite("The agent")
struct SyncAgentTests {
    /// Two machines of one circle, and the folder that they share.
    private func withCircle(_ body: (Machine, Machine, FolderStorage) async throws -> Void) async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (one, other) = (try Machine("one", in: directory.path), try Machine("other", in: directory.path))
        try one.found("spaceball-one")
        try await other.join(one, as: "eagle-5")
        let storage = try await FolderStorage.make(
            path: directory.path + "/shared", outside: [one.home, other.home], options: FolderOptions())
        try await body(one, other, storage)
        withExtendedLifetime(directory) {}
    }

    /// Waits for a condition, at most as long as any machine takes.
    private func expect(_ text: String, _ condition: () throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(60)
        while try !condition() {
            guard ContinuousClock.now < end else { return #expect(Bool(false), "\(text)") }
            await Task.yield()
        }
    }

    @Test("What was stored before is on the other device after one run of each, and a run of each carries what changed later")
    func quietRuns() async throws {
        try await withCircle { one, other, storage in
            try one.put("a", "1")
            try one.put("b", "2", .whenUnlocked)
            let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
            for agent in agents { try await agent.runUntilQuiet() }
            #expect(try other.secret("a") == "1")
            #expect(try other.secret("b") == "2")
            try other.put("a", "3")
            try other.delete("b")
            for agent in agents.reversed() { try await agent.runUntilQuiet() }
            #expect(try one.secret("a") == "3")
            #expect(try one.secret("b") == nil)
        }
    }

    /// One step folds 512 changes.
    @Test("However much was changed, one run sends it, and one reads it")
    func manyChanges() async throws {
        try await withCircle { one, other, storage in
            for number in 0..<1_300 { try one.put("\(number)", "\(number)") }
            for machine in [one, other] { try await SyncAgent(machine.keychain, on: storage).runUntilQuiet() }
            for number in 0..<1_300 { #expect(try other.secret("\(number)") == "\(number)") }
        }
    }

    @Test("While the agents run, a change reaches the other device, in both directions, also after an unlock")
    func running() async throws {
        try await withCircle { one, other, storage in
            let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
            let runs = agents.map { agent in Task { try await agent.run() } }
            try one.put("a", "1")
            try await expect("the item arrives") { try other.secret("a") == "1" }
            try other.put("a", "2")
            try await expect("the change arrives") { try one.secret("a") == "2" }
            try other.keychain.set("12345")
            try other.keychain.lock(.whenUnlocked)
            try one.put("b", "3", .whenUnlocked)
            try one.put("c", "4")
            try await expect("an item that may be read arrives while locked") { try other.secret("c") == "4" }
            try other.keychain.unlock(with: "12345")
            try await expect("the other item arrives after the unlock") { try other.secret("b") == "3" }
            for run in runs {
                run.cancel()
                try await run.value
            }
        }
    }

    @Test("A storage that is gone is waited for, and nothing is deleted")
    func missingStorage() async throws {
        try await withCircle { one, other, storage in
            try one.put("a", "1")
            let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
            for agent in agents { try await agent.runUntilQuiet() }
            let hidden = storage.path + "-unmounted"
            try FileManager.default.moveItem(atPath: storage.path, toPath: hidden)
            try one.put("b", "2")
            for agent in agents {
                await #expect { try await agent.runUntilQuiet() } throws: { ($0 as? SyncFailure)?.code == .storage }
            }
            #expect(try one.secret("a") == "1" && other.secret("a") == "1")
            try FileManager.default.moveItem(atPath: hidden, toPath: storage.path)
            for agent in agents { try await agent.runUntilQuiet() }
            #expect(try other.secret("b") == "2")
        }
    }

    @Test("A keychain without a circle has no agent, and one with a circle has one")
    func exclusion() async throws {
        try await withCircle { one, _, storage in
            let agent = try SyncAgent(one.keychain, on: storage)
            #expect { try SyncAgent(one.keychain, on: storage) } throws: { ($0 as? SyncFailure)?.code == .agentRunning }
            withExtendedLifetime(agent) {}
        }
        try withTemporaryDirectory(inMemory: true) { directory in
            let machine = try Machine("one", in: directory)
            #expect { try SyncAgent(machine.keychain, on: FolderStorage(path: directory)) } throws: {
                ($0 as? SyncFailure)?.code == .notStarted
            }
        }
    }

    @Test("A device that was removed stops, keeps its items, and reads nothing that is written later")
    func removal() async throws {
        try await withCircle { one, other, storage in
            try one.put("a", "1")
            let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
            for agent in agents { try await agent.runUntilQuiet() }
            let device = try other.keychain.readLedger { ledger throws(KeychainFailure) in try Membership.stored(in: ledger)?.device }
            try await one.perform(.remove(try #require(device)))
            try one.put("a", "2")
            try await agents[0].runUntilQuiet()
            await #expect { try await agents[1].runUntilQuiet() } throws: { ($0 as? SyncFailure)?.code == .removed }
            #expect(try other.secret("a") == "1")
        }
    }
}
