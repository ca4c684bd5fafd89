// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainSync
import KeychainTestSupport
import SyncCore
import Synchronization
import Testing

/// A keychain that enters its circle again: what was deleted meanwhile does not come back, and what was changed is no conflict.
@Suite("Entering a circle again")
struct RejoinTests {
    /// How a device gets out of its circle.
    enum Exit: CaseIterable { case leave, removal }

    /// Two devices with the same items, of which one has left the circle.
    private func bench(
        after exit: Exit = .leave, items: [String] = ["kept", "deleted", "changed"], _ accessibility: ItemAccessibility = .afterFirstUnlock
    ) async throws -> CircleBench {
        let bench = try await CircleBench()
        for item in items { try bench.one.put(item, "1", accessibility) }
        _ = try await bench.start()
        try await bench.join()
        switch exit {
        case .leave: break
        case .removal:
            let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
            _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
            await expectFailure(.removed) { try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet() }
        }
        _ = try await bench.other.use { try KeychainSync.leave() }
        return bench
    }

    /// A deletion is in the log of another lane than an item that can be read while unlocked only, and may be read before it.
    @Test(
        "What the circle has deleted or changed meanwhile is deleted or changed here too", arguments: Exit.allCases,
        [.afterFirstUnlock, .whenUnlocked] as [ItemAccessibility])
    func rejoin(after exit: Exit, _ accessibility: ItemAccessibility) async throws {
        let bench = try await bench(after: exit, accessibility)
        try bench.one.delete("deleted")
        try bench.one.put("changed", "2", accessibility)
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let joined = try await bench.join()
        try await bench.exchange()
        #expect(joined.conflictCount == 0 && joined.sharedItemCount == 2 && joined.unsharedItemCount == 0)
        #expect(try bench.one.secret("deleted") == nil && bench.other.secret("deleted") == nil)
        #expect(try bench.one.secret("changed") == "2" && bench.other.secret("changed") == "2")
        #expect(try bench.one.secret("kept") == "1" && bench.other.secret("kept") == "1")
        for machine in [bench.one, bench.other] {
            #expect(try await machine.use { try KeychainSync.conflicts() }.isEmpty)
        }
    }

    @Test(
        "Many deletions wait for a confirmation, because they delete what the device has",
        arguments: [.afterFirstUnlock, .whenUnlocked] as [ItemAccessibility])
    func manyDeletions(_ accessibility: ItemAccessibility) async throws {
        let items = (1...120).map { "\($0)" }
        let bench = try await bench(items: items, accessibility)
        for item in items { try bench.one.delete(item) }
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        #expect(try await bench.join().unread?.code == .deletionsWait)
        #expect(try bench.other.secret("1") == "1")
    }

    @Test("What a program has written after the device had left is shared")
    func laterWrites() async throws {
        let bench = try await bench()
        try bench.other.put("changed", "2")
        try bench.other.put("added", "3")
        try bench.other.delete("deleted")
        let joined = try await bench.join()
        try await bench.exchange()
        #expect(joined.unsharedItemCount == 0)
        #expect(try bench.one.secret("changed") == "2" && bench.one.secret("added") == "3")
        // A deletion that no circle has seen is none: the circle's item comes.
        #expect(try bench.other.secret("deleted") == "1")
    }

    /// Lets the first device write a checkpoint, and a week later remove the batches that it covers.
    private func removeHistory(_ bench: CircleBench) async throws {
        for round in 1...2 {
            for number in 1...300 {
                if round == 1 { try bench.one.put("\(number)", "1") } else { try bench.one.delete("\(number)") }
            }
            try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        }
        for weeks in 0...1 {
            let clock = LaterClock(seconds: 8 * 86_400 * Double(weeks))
            try await SyncAgent(bench.one.keychain, on: bench.storage, clock: clock).runUntilQuiet()
        }
    }

    @Test("A person shares what stays on the device, or deletes it, and a program that changes it shares it")
    func decisions() async throws {
        let items = ["shared", "discarded", "rewritten", "removed", "left"]
        let bench = try await bench(items: items)
        for item in items { try bench.one.delete(item) }
        try await removeHistory(bench)
        #expect(try await bench.join().unsharedItemCount == 5)
        let status = try await bench.other.use { try KeychainSync.status() }
        #expect(status.sharedItemCount == 0 && status.unsharedItemCount == 5 && status.unsentCount == 0)
        try await bench.other.use {
            let unshared = try KeychainSync.unsharedItems()
            func named(_ account: String) -> [SyncUnsharedItem] { unshared.filter { $0.item?.account == account } }
            try await KeychainSync.share(named("shared"), on: bench.storage)
            try await KeychainSync.delete(named("discarded"))
            try bench.other.put("rewritten", "2")
            try bench.other.delete("removed")
        }
        try await bench.exchange()
        #expect(try items.map(bench.one.secret) == ["1", nil, "2", nil, nil])
        #expect(try items.map(bench.other.secret) == ["1", nil, "2", nil, "1"])
        #expect(try await bench.other.use { try KeychainSync.unsharedItems() }.map { $0.item?.account } == ["left"])

        // It is remembered for the next time.
        _ = try await bench.other.use { try KeychainSync.leave() }
        #expect(try await bench.join().unsharedItemCount == 1)
        try await bench.exchange()
        #expect(try bench.one.secret("left") == nil)
    }

    @Test("Another circle than the one that was left gets all items")
    func otherCircle() async throws {
        let bench = try await bench()
        let storage = try await FolderStorage.make(path: bench.directory.path + "/elsewhere", outside: [], options: FolderOptions())
        let start = try await bench.other.use { try await KeychainSync.start(on: storage, deviceName: "eagle-5") }
        #expect(start.sharedItemCount == 3)
    }

    @Test("A change that was not sent before the device left is shared when it joins again")
    func unsentChanges() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        try bench.other.put("a", "2")
        try bench.other.put("b", "1")
        _ = try await bench.other.use { try KeychainSync.leave() }
        let joined = try await bench.join()
        try await bench.exchange()
        #expect(joined.unsharedItemCount == 0)
        #expect(try bench.one.secret("a") == "2" && bench.one.secret("b") == "1")
    }

    /// Lets the other device write a = 2 and b = 1 while the folder hides its removal from it, learn of the removal, leave, and join again.
    ///
    /// `whileItWrites` is what the first device writes meanwhile.
    private func removedBench(whileItWrites: (CircleBench) throws -> Void = { _ in }) async throws -> (CircleBench, SyncJoined) {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        let statements = try FileManager.default.subpathsOfDirectory(atPath: bench.storage.path)
        _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        let hidden = try FileManager.default.subpathsOfDirectory(atPath: bench.storage.path).filter { !statements.contains($0) }
        var contents: [String: Data] = [:]
        for path in hidden {
            contents[path] = FileManager.default.contents(atPath: bench.storage.path + "/" + path)
            try? FileManager.default.removeItem(atPath: bench.storage.path + "/" + path)
        }
        try bench.other.put("a", "2")
        try bench.other.put("b", "1")
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        for (path, bytes) in contents {
            #expect(FileManager.default.createFile(atPath: bench.storage.path + "/" + path, contents: bytes))
        }
        try whileItWrites(bench)
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        await expectFailure(.removed) { try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet() }
        _ = try await bench.other.use { try KeychainSync.leave() }
        return (bench, try await bench.join())
    }

    /// The values that the other device has of items in conflict.
    private func valuesInConflict(_ bench: CircleBench) async throws -> Set<String> {
        try await bench.other.use {
            Set(try KeychainSync.conflicts().flatMap { $0.versions.map { String(decoding: $0.content?.secret ?? Data(), as: UTF8.self) } })
        }
    }

    @Test("What a removed device wrote before it learned of its removal is a conflict copy where the circle has a newer value")
    func overwrittenWritesOfRemovedDevice() async throws {
        let (bench, joined) = try await removedBench { try $0.one.put("a", "3") }
        #expect(joined.conflictCount == 1)
        #expect(try bench.other.secret("a") == "3")
        #expect(try await valuesInConflict(bench) == ["2", "3"])
    }

    @Test("A later value in the circle ends no conflict with what a removed device wrote")
    func laterWritesInTheCircle() async throws {
        let (bench, _) = try await removedBench()
        try bench.one.put("a", "3")
        try bench.one.put("b", "4")
        try await bench.exchange()
        #expect(try await valuesInConflict(bench) == ["2", "3", "1", "4"])
    }

    @Test("A keychain that was in another circle meanwhile brings nothing back")
    func circleInBetween() async throws {
        let bench = try await bench()
        let storage = try await FolderStorage.make(path: bench.directory.path + "/elsewhere", outside: [], options: FolderOptions())
        _ = try await bench.other.use { try await KeychainSync.start(on: storage, deviceName: "eagle-5") }
        _ = try await bench.other.use { try KeychainSync.leave() }
        try bench.one.delete("deleted")
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        try await bench.join()
        try await bench.exchange()
        #expect(try bench.one.secret("deleted") == nil)
    }

    @Test("What a removed device wrote before it learned of its removal is lost nowhere")
    func writesOfRemovedDevice() async throws {
        let (bench, joined) = try await removedBench()
        #expect(joined.conflictCount == 1 && joined.unsharedItemCount == 1)
        #expect(try bench.other.secret("a") == "2" && bench.other.secret("b") == "1")
        try await bench.other.use {
            let conflict = try #require(try KeychainSync.conflicts().first)
            let version = try #require(conflict.versions.first)
            #expect(version.isVisible && version.isNotShared)
            try await KeychainSync.keep(version, of: conflict, on: bench.storage)
        }
        try await bench.exchange()
        #expect(try bench.one.secret("a") == "2" && bench.one.secret("b") == nil)
    }

    @Test("What a device had sent before it left, and the others had not read before they removed it, is lost nowhere")
    func unreadWrites() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        try bench.other.put("a", "2")
        try bench.other.put("b", "1")
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        _ = try await bench.other.use { try KeychainSync.leave() }
        try await bench.one.perform(.remove(DeviceID(try #require(Identifier128(hexadecimal: device.id)))))
        try bench.one.put("a", "3")
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let joined = try await bench.join()
        #expect(joined.conflictCount == 1 && joined.unsharedItemCount == 1)
        #expect(try await valuesInConflict(bench) == ["2", "3"])
        #expect(try bench.other.secret("b") == "1")
    }

    @Test("A second attempt to recover a circle makes no conflict of what the first one had read, and brings back nothing")
    func interruptedRecovery() async throws {
        let bench = try await CircleBench()
        for item in ["kept", "deleted", "changed"] { try bench.one.put(item, "1") }
        let start = try await bench.start()
        let failing = FailingStorage(bench.storage)
        await expectFailure(.storage) {
            _ = try await bench.other.use {
                try await KeychainSync.recover(on: failing, recoveryKit: start.recoveryKit, deviceName: "eagle-5")
            }
        }
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.status() } }
        #expect(try bench.other.secret("deleted") == "1")
        try bench.one.delete("deleted")
        try bench.one.put("changed", "2")
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let recovery = try await bench.other.use {
            try await KeychainSync.recover(on: bench.storage, recoveryKit: start.recoveryKit, deviceName: "eagle-5")
        }
        #expect(recovery.sharedItemCount == 2 && recovery.unsharedItemCount == 0)
        #expect(try await bench.other.use { try KeychainSync.conflicts() }.isEmpty)
        #expect(try ["kept", "deleted", "changed"].map(bench.other.secret) == ["1", nil, "2"])
    }
}

private struct LaterClock: WallClock {
    let seconds: Double
    func now() -> Double { SystemClock().now() + seconds }
}

/// A storage in which nothing can be created.
final class FailingStorage: SyncStorage {
    private let storage: FolderStorage
    private let failureCount: Mutex<Int>

    /// `failureCount`: how many calls fail before the first one succeeds.
    init(_ storage: FolderStorage, failureCount: Int = .max) {
        self.storage = storage
        self.failureCount = Mutex(failureCount)
    }

    var location: String { storage.location }
    func list(_ folder: String) async throws(SyncStorageError) -> [String] { try await storage.list(folder) }
    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await storage.read(name, atMost: byteCount)
    }
    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        let fails = failureCount.withLock { count in
            defer { count = max(count - 1, 0) }
            return count > 0
        }
        if fails { throw SyncStorageError(.full, "the disk is full") }
        return try await storage.create(name, bytes)
    }
    func remove(_ name: String) async throws(SyncStorageError) { try await storage.remove(name) }
    func changes() -> AsyncStream<SyncStorageChange> { storage.changes() }
}
