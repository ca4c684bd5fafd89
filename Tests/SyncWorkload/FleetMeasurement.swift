// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import Synchronization

/// What machines with one credential cost: themselves, the writer whose changes they read, and the storage.
struct FleetMeasurement {
    private let root: String
    private let machineCount: Int
    private let itemCount = 100
    private let owner: Device
    private let storage: CountingStorage
    private let timer = ContinuousClock()

    /// Creates the owner's keychain, and a folder in `root`, which should be on a disk.
    init(in root: String, machineCount: Int) async throws {
        self.root = root
        self.machineCount = machineCount
        owner = try Device(1, in: root)
        try Self.makeHome(root + "/device-1")
        let shared = try owner.storage()
        storage =
            if let folder = shared as? FolderStorage {
                CountingStorage(try await FolderStorage.make(path: folder.path, outside: [root + "/device-1"], options: FolderOptions()))
            } else {
                CountingStorage(shared)
            }
    }

    private static func makeHome(_ path: String) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    func run() async throws {
        for number in 0..<itemCount { try owner.add(number, value: "correct horse \(number)") }
        _ = try await owner.use { try await KeychainSync.start(on: storage, deviceName: "owner") }
        let credential = try await owner.use {
            try await KeychainSync.makeCredential(named: "fleet", validFor: .seconds(86_400), on: storage)
        }
        // As many changes as later, so that about as many objects are in the storage.
        try await change(100)
        print("the writer, without a machine: \(try await measureChanges())")
        let before = try await storage.list("").sorted()
        var machines: [LocalKeychain] = []
        storage.reset()
        var (durations, usage): ([Double], Double) = ([], Self.processorSeconds())
        for number in 1...machineCount {
            let home = root + "/machine-\(number)"
            try Self.makeHome(home)
            let machine = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
            let start = timer.now
            let joined = try await join(machine, with: credential)
            durations.append((timer.now - start) / .milliseconds(1))
            guard joined.sharedItemCount == itemCount, joined.unread == nil else { throw Failure("a machine lacks items") }
            machines.append(machine)
        }
        durations.sort()
        print(
            """
            joining, \(machineCount) machines one after the other, \(itemCount) items: median \(Self.rounded(durations[machineCount / 2])) ms, \
            \(Self.rounded((Self.processorSeconds() - usage) * 1_000 / Double(machineCount))) ms of CPU, \(storage.description(per: machineCount))
            """)
        guard try await storage.list("").sorted() == before else { throw Failure("the machines have changed the storage") }
        print("the writer, with \(machineCount) machines: \(try await measureChanges())")

        try owner.change(1, value: "for all")
        try await SyncAgent(owner.keychain, on: storage).runUntilQuiet()
        let objects = try await storage.list("").count
        storage.reset()
        usage = Self.processorSeconds()
        for machine in machines { try await SyncAgent(machine, on: storage).runUntilQuiet() }
        print(
            """
            a restarted agent that reads one change: \(Self.rounded((Self.processorSeconds() - usage) * 1_000 / Double(machineCount))) ms \
            of CPU, \
            \(storage.description(per: machineCount))
            """)
        guard try await storage.list("").count == objects else { throw Failure("the machines have changed the storage") }
    }

    private func join(_ machine: LocalKeychain, with credential: SyncCredential) async throws -> SyncJoined {
        try await CurrentKeychain.$bound.withValue(machine) { try await KeychainSync.join(on: storage, credential: credential) }
    }

    /// Changes an item 50 times, and describes what each change has cost.
    private func measureChanges() async throws -> String {
        try await change(10)
        storage.reset()
        let usage = Self.processorSeconds()
        try await change(50)
        let milliseconds = Self.rounded((Self.processorSeconds() - usage) * 20)
        return "\(milliseconds) ms of CPU for a change, \(storage.description(per: 50))"
    }

    private func change(_ count: Int) async throws {
        for number in 0..<count {
            try owner.change(number % itemCount, value: "change \(number) \(timer.now)")
            try await SyncAgent(owner.keychain, on: storage).runUntilQuiet()
        }
    }

    /// Rounds to tenths.
    private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }

    private static func processorSeconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) }
}

/// A storage that counts what it moves.
private final class CountingStorage: SyncStorage {
    private struct Counts {
        var listedNames = 0
        var reads = 0
        var readBytes = 0
        var creations = 0
        var createdBytes = 0
    }

    private let storage: any SyncStorage
    private let counts = Mutex(Counts())

    init(_ storage: any SyncStorage) { self.storage = storage }

    func reset() { counts.withLock { $0 = Counts() } }

    /// Describes the counts, divided by a number.
    func description(per count: Int) -> String {
        let counts = counts.withLock { $0 }
        func part(_ number: Int) -> Double { (Double(number) * 10 / Double(count)).rounded() / 10 }
        return """
            \(part(counts.listedNames)) names listed, \(part(counts.reads)) objects of \(part(counts.readBytes)) bytes read, \
            \(part(counts.creations)) of \(part(counts.createdBytes)) bytes created
            """
    }

    var location: String { storage.location }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        let names = try await storage.list(folder)
        counts.withLock { $0.listedNames += names.count }
        return names
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        let bytes = try await storage.read(name, atMost: byteCount)
        counts.withLock {
            $0.reads += 1
            $0.readBytes += bytes?.count ?? 0
        }
        return bytes
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        counts.withLock {
            $0.creations += 1
            $0.createdBytes += bytes.count
        }
        return try await storage.create(name, bytes)
    }

    func remove(_ name: String) async throws(SyncStorageError) { try await storage.remove(name) }
    func changes() -> AsyncStream<SyncStorageChange> { storage.changes() }
}
