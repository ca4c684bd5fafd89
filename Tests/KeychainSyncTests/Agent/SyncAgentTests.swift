// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainSystem
import KeychainTestSupport
import SyncCore
import Synchronization
import Testing

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

    @Test("A program waits until its changes are sent, and learns if they are not")
    func flush() async throws {
        try await withCircle { one, other, storage in
            let agent = try SyncAgent(one.keychain, on: storage)
            try one.put("a", "1")
            #expect(try await !agent.flush(within: .zero))
            let run = Task { try await agent.run() }
            #expect(try await agent.flush(within: .seconds(60)))
            try one.put("b", "2")
            #expect(try await agent.flush(within: .seconds(60)))
            run.cancel()
            try await run.value
            try await SyncAgent(other.keychain, on: storage).runUntilQuiet()
            #expect(try other.secret("a") == "1" && other.secret("b") == "2")
        }
    }

    @Test("Batches that a hint names are read without a listing, and any other hint begins a round")
    func hintedNames() async throws {
        try await withCircle { one, other, folder in
            let sender = try SyncAgent(one.keychain, on: folder)
            try one.put("a", "1")
            try await sender.runUntilQuiet()
            let storage = HintedStorage(folder)
            let run = Task { [agent = try SyncAgent(other.keychain, on: storage)] in try await agent.run() }
            try await expect("the first round") { try other.secret("a") == "1" }
            for value in ["2", "3"] {
                let (names, count) = (try await folder.list(""), storage.listingCount)
                try one.put("a", value)
                try await sender.runUntilQuiet()
                storage.hint(.created(try await folder.list("").filter { !names.contains($0) }))
                try await expect("the named batch") { try other.secret("a") == value }
                #expect(storage.listingCount == count)
            }
            let count = storage.listingCount
            let statements = try await folder.list("").filter { $0.contains("/m/") }
            storage.hint(.created(statements))
            try await expect("a round after a statement") { storage.listingCount > count }
            try one.put("a", "4")
            try await sender.runUntilQuiet()
            storage.hint(.unknown)
            try await expect("a round") { try other.secret("a") == "4" }
            run.cancel()
            try await run.value
        }
    }

    @Test("A command can show how many objects a run has read and created")
    func progress() async throws {
        try await withCircle { one, other, storage in
            try one.put("a", "1")
            let counts = Mutex<[Int]>([])
            try await SyncProgress.$current.withValue(SyncProgress { count in counts.withLock { $0.append(count) } }) {
                for machine in [one, other] { try await SyncAgent(machine.keychain, on: storage).runUntilQuiet() }
            }
            let shown = counts.withLock { $0 }
            let runs = shown.split { $0 == 1 }
            #expect(shown.filter { $0 == 1 }.count == 2 && runs.allSatisfy { Array($0) == Array(2..<$0.count + 2) })
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

    @Test("Each of many changes reaches the other device while the agents run, however fast they follow each other")
    func quickChanges() async throws {
        try await withCircle { one, other, storage in
            let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
            let runs = agents.map { agent in Task { try await agent.run() } }
            for number in 1...100 {
                try one.put("a", "\(number)")
                try await expect("change \(number) arrives") { try other.secret("a") == "\(number)" }
            }
            for run in runs {
                run.cancel()
                try await run.value
            }
        }
    }

    @Test("What a person asks another process for is sent by the agent at once, also where the storage gives no hints")
    func commands() async throws {
        try await withCircle { one, other, storage in
            let agent = try SyncAgent(one.keychain, on: SilentStorage(folder: storage))
            let run = Task { try await agent.run() }
            for number in 1...10 {
                try await one.perform(.rename(try #require(DeviceName("name \(number)"))))
                try await expect("name \(number) is sent") {
                    try one.keychain.readLedger { ledger throws(KeychainFailure) in
                        try ledger.outgoingNames().isEmpty ? try ledger.setting(.toldName) == ledger.setting(.ownName) : false
                    }
                }
            }
            run.cancel()
            try await run.value
        }
    }

    @Test("A run that is canceled ends once the calls of the storage that it has begun have ended")
    func cancellation() async throws {
        try await withCircle { one, _, storage in
            let gated = GatedStorage(storage)
            try one.put("a", "1")
            let agent = try SyncAgent(one.keychain, on: gated)
            let run = Task { try await agent.run() }
            await gated.creationBegins()
            run.cancel()
            let isCreated = Task {
                try await run.value
                return try await !storage.list("").isEmpty
            }
            // A run that does not wait ends meanwhile.
            for _ in 0..<1_000 { await Task.yield() }
            gated.open()
            #expect(try await isCreated.value)
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
            #expect(try await one.use { try KeychainSync.status() }.warnings.count == 1)
            try FileManager.default.moveItem(atPath: hidden, toPath: storage.path)
            for agent in agents { try await agent.runUntilQuiet() }
            #expect(try other.secret("b") == "2")
            #expect(try await one.use { try KeychainSync.status() }.warnings.isEmpty)
        }
    }

    @Test("An item of more than 1 MiB is not shared, and the status names it until it is gone, but not while it is locked")
    func largeItem() async throws {
        try await withCircle { one, other, storage in
            try one.put("large", String(repeating: "1", count: 1_048_577), .whenUnlocked)
            try one.put("small", "1")
            for machine in [one, other] { try await SyncAgent(machine.keychain, on: storage).runUntilQuiet() }
            #expect(try other.secret("large") == nil && other.secret("small") == "1")
            let status = try await one.use { try KeychainSync.status() }
            #expect(status.unsentCount == 1 && status.warnings.map(\.item?.account) == ["large"])
            try one.keychain.set("12345")
            try one.keychain.lock(.whenUnlocked)
            try await SyncAgent(one.keychain, on: storage).runUntilQuiet()
            #expect(try await one.use { try KeychainSync.status() }.warnings.map(\.item) == [nil])
            try one.keychain.unlock(with: "12345", autoLock: .never)
            try one.delete("large")
            try await SyncAgent(one.keychain, on: storage).runUntilQuiet()
            #expect(try await one.use { try KeychainSync.status() }.warnings.isEmpty)
        }
    }

    @Test("A run ends although the storage has an object that is of no use")
    func uselessObject() async throws {
        try await withCircle { one, other, storage in
            try one.put("a", "1")
            try await SyncAgent(one.keychain, on: storage).runUntilQuiet()
            let batch = try #require(try await storage.list("").first { $0.contains("/b/") })
            let useless = batch.dropLast() + (batch.last == "0" ? "1" : "0")
            _ = try await storage.create(String(useless), [1, 2, 3])
            try await SyncAgent(other.keychain, on: storage).runUntilQuiet()
            #expect(try other.secret("a") == "1")
        }
    }

    @Test(
        "A run on a full disk ends with an error, and what it could not send is sent later",
        .enabled(if: MountedFolder.Kind.tmpfs.isUsable, "mounting requires root"))
    func fullStorage() async throws {
        try await withCircle { one, other, _ in
            let folder = try await MountedFolder(.tmpfs, byteCount: 1 << 20)
            try one.put("a", "1")
            for machine in [one, other] { try await SyncAgent(machine.keychain, on: folder.storage).runUntilQuiet() }
            let filling = folder.directory.path + "/filling"
            #expect(!MountedFolder.run("cp", "/dev/zero", filling))
            try one.put("b", "2")
            await #expect { try await SyncAgent(one.keychain, on: folder.storage).runUntilQuiet() } throws: {
                ($0 as? SyncFailure)?.code == .storage
            }
            try FileManager.default.removeItem(atPath: filling)
            for machine in [one, other] { try await SyncAgent(machine.keychain, on: folder.storage).runUntilQuiet() }
            #expect(try other.secret("a") == "1" && other.secret("b") == "2")
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

    @Test("A lock that is released is free although a child process that was just forked has a copy of its descriptor")
    func releasedLock() throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let path = directory + "/sync.lock"
            let one = try OpenFile(path, .createExclusively)
            let other = try OpenFile(path, .readWrite)
            #expect(try one.descriptor.tryLock(.synchronizing))
            let copy = dup(one.descriptor.rawValue)
            defer { close(copy) }
            #expect(other.descriptor.isLockedByOthers(.synchronizing))
            #expect(try !other.descriptor.tryLock(.synchronizing))
            try one.descriptor.unlock(.synchronizing)
            #expect(!other.descriptor.isLockedByOthers(.synchronizing))
            #expect(try other.descriptor.tryLock(.synchronizing))
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

/// A folder in which nothing is created before the gate is opened.
private final class GatedStorage: SyncStorage {
    private let folder: FolderStorage
    private let begun = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    private let gate = AsyncStream<Void>.makeStream()

    init(_ folder: FolderStorage) { self.folder = folder }

    var location: String { folder.location }

    func creationBegins() async { for await _ in begun.stream { return } }
    func open() { gate.continuation.finish() }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] { try await self.folder.list(folder) }
    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await folder.read(name, atMost: byteCount)
    }
    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        begun.continuation.yield()
        for await _ in gate.stream {}
        return try await folder.create(name, bytes)
    }
    func remove(_ name: String) async throws(SyncStorageError) { try await folder.remove(name) }
    func changes() -> AsyncStream<SyncStorageChange> { folder.changes() }
}

/// A folder whose changes a test reports.
private final class HintedStorage: SyncStorage {
    private let folder: FolderStorage
    private let hints = AsyncStream<SyncStorageChange>.makeStream()
    private let listings = Mutex(0)

    init(_ folder: FolderStorage) { self.folder = folder }

    var location: String { folder.location }
    var listingCount: Int { listings.withLock(\.self) }

    func hint(_ change: SyncStorageChange) { hints.continuation.yield(change) }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        listings.withLock { $0 += 1 }
        return try await self.folder.list(folder)
    }
    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await folder.read(name, atMost: byteCount)
    }
    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation { try await folder.create(name, bytes) }
    func remove(_ name: String) async throws(SyncStorageError) { try await folder.remove(name) }
    func changes() -> AsyncStream<SyncStorageChange> { hints.stream }
}

/// A folder whose changes are not reported.
private struct SilentStorage: SyncStorage {
    let folder: FolderStorage

    var location: String { folder.location }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] { try await self.folder.list(folder) }
    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await folder.read(name, atMost: byteCount)
    }
    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation { try await folder.create(name, bytes) }
    func remove(_ name: String) async throws(SyncStorageError) { try await folder.remove(name) }
    func changes() -> AsyncStream<SyncStorageChange> { AsyncStream { _ in } }
}
