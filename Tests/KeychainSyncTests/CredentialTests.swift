// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// Machines that share one reader, by the public interface: nothing that they do shows in the storage.
@Suite("Credentials for fleets")
struct CredentialTests {
    private func make(
        _ bench: CircleBench, name: String = "web", by machine: Machine? = nil, validFor duration: Duration = .seconds(90 * 86_400)
    ) async throws -> SyncCredential {
        try await (machine ?? bench.one).use {
            try await KeychainSync.makeCredential(named: name, validFor: duration, on: bench.storage)
        }
    }

    @discardableResult
    private func join(_ machine: Machine, _ bench: CircleBench, with credential: SyncCredential) async throws -> SyncJoined {
        try await machine.use { try await KeychainSync.join(on: bench.storage, credential: credential) }
    }

    private func machine(_ name: String, _ bench: CircleBench) throws -> Machine {
        try Machine(name, in: bench.directory.path, isSynchronizing: false)
    }

    /// The names and contents of all objects in the folder.
    private func objects(_ bench: CircleBench) throws -> [String: Data] {
        var objects: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: bench.storage.path) {
            objects[path] = FileManager.default.contents(atPath: bench.storage.path + "/" + path)
        }
        return objects
    }

    private func send(_ bench: CircleBench) async throws {
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
    }

    @Test("Machines with empty disks join without a person, receive changes, and leave nothing in the storage")
    func join() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        try bench.one.put("b", "2", .whenUnlocked)
        _ = try await bench.start()
        let credential = try await make(bench)
        #expect(credential.name == "web" && credential.location == bench.storage.location)
        let before = try objects(bench)
        var machines: [Machine] = []
        for number in 1...3 {
            let machine = try machine("machine-\(number)", bench)
            let joined = try await join(machine, bench, with: credential)
            #expect(joined.role == .reader && joined.sharedItemCount == 2 && joined.unread == nil)
            #expect(try machine.secret("a") == "1" && machine.secret("b") == "2")
            machines.append(machine)
        }
        #expect(try objects(bench) == before)
        try bench.one.put("a", "3")
        try await send(bench)
        let later = try objects(bench)
        for machine in machines {
            // Each start of a machine joins again.
            try await join(machine, bench, with: credential)
            #expect(try machine.secret("a") == "3")
            let status = try await machine.use { try KeychainSync.status() }
            #expect(status.warnings.isEmpty && status.deviceCount == 2 && status.unsentCount == 0 && status.unreadDevices.isEmpty)
        }
        #expect(try objects(bench) == later)
    }

    @Test("A credential can be stored in a file for this user only, and a file that exists is not replaced")
    func files() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let credential = try await make(bench)
        let path = bench.directory.path + "/web"
        try credential.write(toPath: path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        let read = try SyncCredential(path: path)
        #expect(read.name == "web" && read.expires == credential.expires)
        #expect("\(read)" == "(credential web)")
        await expectFailure(.invalidCredential) { try credential.write(toPath: path) }
        await expectFailure(.invalidCredential) { _ = try SyncCredential(path: path + "-2") }
        let bytes = try #require(FileManager.default.contents(atPath: path))
        #expect(try SyncCredential(bytes).name == "web")
        for wrong in [Data(), Data("Skroob".utf8), bytes.dropLast(), bytes + [0]] {
            await expectFailure(.invalidCredential) { _ = try SyncCredential(wrong) }
        }
        let machine = try machine("machine", bench)
        #expect(try await join(machine, bench, with: read).unread == nil)
    }

    @Test("A write on such a machine is kept, marked as not shared, and the circle's value stands")
    func localWrites() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let credential = try await make(bench)
        let machine = try machine("machine", bench)
        try await join(machine, bench, with: credential)
        let before = try objects(bench)
        try machine.put("a", "mine")
        try machine.put("b", "mine")
        try await join(machine, bench, with: credential)
        #expect(try machine.secret("a") == "1" && machine.secret("b") == "mine")
        let conflicts = try await machine.use { try KeychainSync.conflicts() }
        #expect(conflicts.map { $0.versions.map(\.isNotShared) } == [[false, true]])
        #expect(try objects(bench) == before)
        try await send(bench)
        #expect(try bench.one.secret("a") == "1" && bench.one.secret("b") == nil)
    }

    @Test("Machines that are restored from snapshots or cloned run beside each other without an alarm")
    func snapshots() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let credential = try await make(bench)
        let original = try machine("machine", bench)
        try await join(original, bench, with: credential)
        let clones = [1, 2].map { "clone-\($0)" }
        for clone in clones {
            try FileManager.default.copyItem(atPath: original.home, toPath: bench.directory.path + "/" + clone)
        }
        try bench.one.put("a", "2")
        try await send(bench)
        try await join(original, bench, with: credential)
        let before = try objects(bench)
        for clone in clones {
            let machine = try machine(clone, bench)
            #expect(try machine.secret("a") == "1")
            try machine.put("c", clone)
            try await join(machine, bench, with: credential)
            #expect(try machine.secret("a") == "2" && machine.secret("c") == clone)
            #expect(try await machine.use { try KeychainSync.status() }.warnings.isEmpty)
        }
        #expect(try objects(bench) == before)
        try await send(bench)
        #expect(try await bench.one.use { try KeychainSync.status() }.warnings.isEmpty)
    }

    @Test("Machines with another credential go on with what they have, and those with a removed one stop")
    func replacement() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let first = try await make(bench, name: "web 1")
        let (updated, outdated) = (try machine("updated", bench), try machine("outdated", bench))
        for machine in [updated, outdated] { try await join(machine, bench, with: first) }
        let second = try await make(bench, name: "web 2")
        try await join(updated, bench, with: second)
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.first { $0.name == "web 1" })
        let removal = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        #expect(removal.device.expires == first.expires)
        try bench.one.put("a", "2")
        try await send(bench)
        let before = try objects(bench)
        #expect(try await join(updated, bench, with: second).unread == nil)
        #expect(try updated.secret("a") == "2")
        await expectFailure(.removed) { try await SyncAgent(outdated.keychain, on: bench.storage).runUntilQuiet() }
        await expectFailure(.removed) { try await join(outdated, bench, with: first) }
        let empty = try machine("empty", bench)
        await expectFailure(.removed) { try await join(empty, bench, with: first) }
        #expect(try outdated.secret("a") == "1" && empty.secret("a") == nil)
        for machine in [outdated, empty] {
            #expect(try await join(machine, bench, with: second).unread == nil)
            #expect(try machine.secret("a") == "2")
            #expect(try await machine.use { try KeychainSync.devices() }.first?.name == "web 2")
        }
        #expect(try objects(bench) == before)
    }

    @Test("A credential replaces no other membership, and no credential that an agent uses")
    func otherMemberships() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let (first, second) = (try await make(bench, name: "1"), try await make(bench, name: "2"))
        await expectFailure(.alreadyStarted) { try await join(bench.one, bench, with: first) }
        try await bench.join(as: .reader)
        await expectFailure(.alreadyStarted) { try await join(bench.other, bench, with: first) }
        let machine = try machine("machine", bench)
        try await join(machine, bench, with: first)
        let agent = try SyncAgent(machine.keychain, on: bench.storage)
        await expectFailure(.agentRunning) { try await join(machine, bench, with: second) }
        // The agent does the work.
        #expect(try await join(machine, bench, with: first).unread == nil)
        withExtendedLifetime(agent) {}
    }

    @Test("A machine remembers another way to its storage")
    func location() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let credential = try await make(bench)
        let machine = try machine("machine", bench)
        try await join(machine, bench, with: credential)
        let path = bench.directory.path + "/mounted-elsewhere"
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: bench.storage.path)
        let joined = try await machine.use { try await KeychainSync.join(on: FolderStorage(path: path), credential: credential) }
        #expect(joined.unread == nil)
        #expect(try await machine.use { try KeychainSync.status() }.location == path)
    }

    @Test("An expired credential is refused, also by the agent of a machine that has joined with it")
    func expiry() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let expired = try await make(bench, name: "expired", validFor: .nanoseconds(1))
        let machine = try machine("machine", bench)
        await expectFailure(.expired) { try await join(machine, bench, with: expired) }
        await expectFailure(.notStarted) { _ = try await machine.use { try KeychainSync.status() } }
        try await join(machine, bench, with: try await make(bench))
        let clock = LateClock(seconds: 91 * 86_400)
        await expectFailure(.expired) { try await SyncAgent(machine.keychain, on: bench.storage, clock: clock).runUntilQuiet() }
        await expectFailure(.expired) { try await SyncAgent(machine.keychain, on: bench.storage, clock: clock).run() }
        #expect(try machine.secret("a") == "1")
        for duration in [Duration.zero, .seconds(-1)] {
            await expectFailure(.invalidInput) { _ = try await make(bench, validFor: duration) }
        }
    }

    @Test("Each owner sees the names and dates of credentials, and what has expired or soon will; other devices are not warned")
    func owners() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        let writer = try machine("writer", bench)
        try await bench.join(writer, as: .writer, name: "writer")
        let expired = try await make(bench, name: "expired", validFor: .nanoseconds(1))
        let soon = try await make(bench, name: "soon", by: bench.other, validFor: .seconds(86_400))
        let later = try await make(bench, name: "later")
        try await bench.exchange()
        try await SyncAgent(writer.keychain, on: bench.storage).runUntilQuiet()
        for machine in [bench.one, bench.other, writer] {
            let devices = try await machine.use { try KeychainSync.devices() }.filter { $0.expires != nil }
            #expect(devices.map(\.name) == ["expired", "later", "soon"])
            #expect(devices.map(\.expires) == [expired.expires, later.expires, soon.expires])
            #expect(devices.allSatisfy { $0.role == .reader && $0.lastSent == nil })
            let warnings = try await machine.use { try KeychainSync.status() }.warnings
            #expect(warnings.count == (machine.home == writer.home ? 0 : 2) && warnings.allSatisfy { $0.failure == nil })
        }
    }

    @Test("A storage that was taken back to a state before the credential was made is noticed")
    func rolledBackStorage() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let earlier = try objects(bench)
        try bench.one.put("a", "2")
        let credential = try await make(bench)
        // The statements that admit the reader are kept: a state without them has no reader at all.
        for path in try objects(bench).keys where earlier[path] == nil && path.contains("/b/") {
            try? FileManager.default.removeItem(atPath: bench.storage.path + "/" + path)
        }
        let machine = try machine("machine", bench)
        let joined = try await join(machine, bench, with: credential)
        #expect(joined.unread?.code == .changesMissing)
        #expect(try machine.secret("a") == "1")
    }

    @Test("A reader, a locked keychain, and a storage that is gone make no credential, and leave no reader behind")
    func failures() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        await expectFailure(.notStarted) { _ = try await make(bench, by: bench.other) }
        try await bench.join(as: .writer)
        await expectFailure(.notOwner) { _ = try await make(bench, by: bench.other) }
        await expectFailure(.invalidInput) { _ = try await make(bench, name: "two\nlines") }
        await expectFailure(.storage) {
            _ = try await bench.one.use {
                try await KeychainSync.makeCredential(
                    named: "web", validFor: .seconds(60), on: FolderStorage(path: bench.directory.path + "/gone"))
            }
        }
        await expectFailure(.storage) {
            _ = try await bench.one.use {
                try await KeychainSync.makeCredential(named: "web", validFor: .seconds(60), on: FailingStorage(bench.storage))
            }
        }
        try bench.one.keychain.set("12345")
        try bench.one.keychain.lock(.whenUnlocked)
        await expectFailure(.locked) { _ = try await make(bench) }
        #expect(try await bench.one.use { try KeychainSync.devices() }.count == 2)
        let machine = try machine("machine", bench)
        let elsewhere = try await FolderStorage.make(path: bench.directory.path + "/elsewhere", outside: [], options: FolderOptions())
        let otherBench = try await CircleBench()
        _ = try await otherBench.start()
        let credential = try await make(otherBench)
        await expectFailure(.noCircle) {
            try await machine.use { _ = try await KeychainSync.join(on: elsewhere, credential: credential) }
        }
        await expectFailure(.notStarted) { _ = try await machine.use { try KeychainSync.status() } }
    }

    @Test("An agent that runs while its keychain makes a credential sends what the machines need")
    func besideAgent() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let agent = try SyncAgent(bench.one.keychain, on: bench.storage)
        let run = Task { try await agent.run() }
        let credential = try await make(bench)
        let machine = try machine("machine", bench)
        #expect(try await join(machine, bench, with: credential).unread == nil)
        #expect(try machine.secret("a") == "1")
        run.cancel()
        try await run.value
    }
}

private struct LateClock: WallClock {
    let seconds: Double
    func now() -> Double { SystemClock().now() + seconds }
}
