// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import SyncCore
import SyncSimulation
import Synchronization

/// What synchronization costs two devices that share a folder of this machine, or a cluster.
struct Measurement {
    private let one: Device
    private let other: Device
    private let storage: any SyncStorage
    private let itemCount: Int
    private let timer = ContinuousClock()

    /// Creates two keychains and a folder in `root`, which should be on a disk.
    init(in root: String, itemCount: Int) async throws {
        (one, other) = (try Device(1, in: root), try Device(2, in: root))
        self.itemCount = itemCount
        let homes = [1, 2].map { "\(root)/device-\($0)" }
        for home in homes {
            try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let shared = try one.storage()
        if let folder = shared as? FolderStorage {
            storage = try await FolderStorage.make(path: folder.path, outside: homes, options: FolderOptions())
        } else {
            storage = shared
        }
    }

    func run() async throws {
        try await start()
        try await measureChanges(count: 500)
        print("10,000 changes, read in one run: \(try await readMissedChanges()) ms")
        try await liveThroughYear()
        try await readManyBatches()
    }

    /// Forms the circle of the two devices.
    private func start() async throws {
        for number in 0..<itemCount { try one.add(number, value: "correct horse \(number)") }
        _ = try await one.use { try await KeychainSync.start(on: storage, deviceName: "device 1") }
        print("\(itemCount) items take \(try await byteCount()) bytes in the storage")
        print("joining: \(try await join()) ms")
    }

    /// Measures only the time from a write to the value on the other device, beside the time from an object to its hint.
    ///
    /// Also the processor time of a change, for both agents and the waiting, in groups of 500 changes: each adds a batch to the storage.
    func measureDelay(changeCount: Int) async throws {
        try await start()
        var hints = storage.changes().makeAsyncIterator()
        var durations: [Double] = []
        for number: UInt64 in 1...220 {
            let name = "p/" + Identifier128.random().hexadecimal + Identifier128.random().hexadecimal
            let start = timer.now
            _ = try await storage.create(name, Array(repeating: UInt8(number & 0xff), count: 700))
            _ = await hints.next()
            durations.append(milliseconds(since: start))
            try await storage.remove(name)
            _ = await hints.next()
        }
        durations = durations.dropFirst(20).sorted()
        print("from an object to its hint: median \(durations[100]) ms, p99 \(durations[198]) ms")
        try await whileAgentsRun {
            _ = try await durationsOfChanges(20) { "warm-up \($0)" }
            var remaining = changeCount
            while remaining > 0 {
                let count = min(500, remaining)
                let usage = Self.processorSeconds()
                durations = try await durationsOfChanges(count) { "change \(remaining) \($0)" }.sorted()
                remaining -= count
                let milliseconds = ((Self.processorSeconds() - usage) * 1_000_000 / Double(count)).rounded() / 1_000
                print(
                    "from a write to the value on the other device: median \(durations[count / 2]) ms, p99 \(durations[count * 99 / 100]) ms, \(milliseconds) ms of CPU"
                )
            }
        }
    }

    /// Measures only the processor time that the agent of a device takes to send a change.
    ///
    /// The agent has finished a change before the next one. The longer it has slept until then, the less of what it needs is in the processor's caches.
    func measureProcessorTime() async throws {
        try await start()
        for pauseMilliseconds in [8, 20, 60] {
            let (withoutAgent, _) = try await processorMilliseconds(pauseMilliseconds)
            let agent = try SyncAgent(one.keychain, on: storage)
            let run = Task { try await agent.run() }
            // Its first round.
            try await Task.sleep(for: .seconds(2))
            let (withAgent, batchCount) = try await processorMilliseconds(pauseMilliseconds)
            run.cancel()
            try await run.value
            let milliseconds = ((withAgent - withoutAgent) * 1_000).rounded() / 1_000
            print(
                "the agent of the writer: \(milliseconds) ms of CPU for each change, \(pauseMilliseconds) ms apart, \(batchCount) batches for 300"
            )
        }
    }

    /// Changes 300 items, and returns the processor time that this process takes for each, and how many batches there are more than before.
    private func processorMilliseconds(_ pauseMilliseconds: Int) async throws -> (Double, batchCount: Int) {
        let batchCount = { try await storage.list("").count { $0.contains("/b/") } }
        let before = try await batchCount()
        let usage = Self.processorSeconds()
        for number in 0..<300 {
            try one.change(number % itemCount, value: "\(number) \(usage)")
            try await Task.sleep(for: .milliseconds(pauseMilliseconds))
        }
        try await Task.sleep(for: .seconds(2))
        return ((Self.processorSeconds() - usage) / 300 * 1_000, try await batchCount() - before)
    }

    private func whileAgentsRun(_ body: () async throws -> Void) async throws {
        let agents = [try SyncAgent(one.keychain, on: storage), try SyncAgent(other.keychain, on: storage)]
        let runs = agents.map { agent in Task { try await agent.run() } }
        try await body()
        for run in runs {
            run.cancel()
            try await run.value
        }
    }

    /// Lets the other device join; both people agree at once.
    private func join() async throws -> Double {
        let invitation = try await one.use { try await KeychainSync.invite(on: storage) }
        let start = timer.now
        async let joining = other.use {
            try await KeychainSync.join(on: storage, code: .code(invitation.code.text), deviceName: "device 2")
        }
        let request = try await one.use { try await invitation.request() }
        let asked = try await joining
        async let joined = other.use { try await asked.confirm() }
        try await one.use { try await request.admit() }
        guard try await joined.sharedItemCount == itemCount else { throw Failure("the device that joined lacks items") }
        return milliseconds(since: start)
    }

    /// Changes one item at a time, while the agents of both devices run, until the other device has the new value.
    private func measureChanges(count: Int) async throws {
        try await whileAgentsRun {
            _ = try await durationsOfChanges(20) { "warm-up \($0)" }
            let before = (batches: try await byteCount(of: "/b/"), all: try await byteCount())
            let durations = try await durationsOfChanges(count) { "change \($0)" }.sorted()
            let batchByteCount = try await byteCount(of: "/b/") - before.batches
            let checkpointByteCount = try await byteCount() - before.all - batchByteCount
            print("from a write to the value on the other device: median \(durations[count / 2]) ms, p99 \(durations[count * 99 / 100]) ms")
            print(
                "bytes in the storage for each change: \(batchByteCount / count), and \(checkpointByteCount / count) in checkpoints, which replace each other"
            )
            // What follows the last change is over, and the timers of calls that have ended: they fire after up to a minute without effect.
            try await Task.sleep(for: .seconds(70))
            let usage = Self.processorSeconds()
            let start = timer.now
            try await Task.sleep(for: .seconds(30))
            let share = (Self.processorSeconds() - usage) / (milliseconds(since: start) / 1_000) / 2
            print("an idle agent: \((share * 100_000).rounded() / 1_000) % of a processor")
        }
    }

    /// Returns the time until each change was readable, in milliseconds.
    private func durationsOfChanges(_ count: Int, value: (Int) -> String) async throws -> [Double] {
        var durations: [Double] = []
        for number in 0..<count {
            let start = timer.now
            try one.change(number % itemCount, value: value(number))
            while try other.value(number % itemCount) != value(number) {
                guard milliseconds(since: start) < 30_000 else { throw Failure("a change did not arrive") }
                try await Task.sleep(for: .microseconds(200))
            }
            durations.append(milliseconds(since: start))
        }
        return durations
    }

    /// Changes 10,000 items in ten rounds, which one device sends, and returns the time in which the other one reads them.
    private func readMissedChanges() async throws -> Double {
        for round in 0..<10 {
            for number in 0..<1_000 { try one.change(number % itemCount, value: "round \(round) \(number)") }
            try await SyncAgent(one.keychain, on: storage).runUntilQuiet()
        }
        let start = timer.now
        try await SyncAgent(other.keychain, on: storage).runUntilQuiet()
        let duration = milliseconds(since: start)
        guard try other.value(999 % itemCount) == "round 9 999" else { throw Failure("the other device lacks a change") }
        return duration
    }

    /// Changes 10,000 items while the agent of one device sends them, and measures the time in which the other one reads these batches.
    private func readManyBatches() async throws {
        let before = try await storage.list("").count
        try await changeWhileAgentRuns(count: 10_000)
        try await SyncAgent(one.keychain, on: storage).runUntilQuiet()
        let fileCount = try await storage.list("").count - before
        let usage = Self.processorSeconds()
        let start = timer.now
        try await SyncAgent(other.keychain, on: storage).runUntilQuiet()
        print(
            "10,000 changes in \(fileCount) files, read in one run: \(milliseconds(since: start)) ms, \(Self.processorSeconds() - usage) s of CPU"
        )
        guard try other.value(9_999 % itemCount) == "one by one 9999" else { throw Failure("the other device lacks a change") }
    }

    private func changeWhileAgentRuns(count: Int) async throws {
        let agent = try SyncAgent(one.keychain, on: storage)
        let run = Task { try await agent.run() }
        for number in 0..<count {
            try one.change(number % itemCount, value: "one by one \(number)")
            // So that most changes are a batch of their own.
            try await Task.sleep(for: .milliseconds(5))
        }
        run.cancel()
        try await run.value
    }

    /// Lets a year pass, in which each device changes five items a day and runs its agent twice.
    private func liveThroughYear() async throws {
        let clock = ManualClock()
        let before = try await byteCount()
        for day in 0..<365 {
            for part in 0..<2 {
                for (index, device) in [one, other].enumerated() {
                    for change in 0..<5 where part == 0 {
                        try device.change((day * 10 + index * 5 + change) % itemCount, value: "day \(day) \(index) \(change)")
                    }
                    try await SyncAgent(device.keychain, on: storage, clock: clock).runUntilQuiet()
                }
                clock.advance(by: 43_200)
            }
        }
        print("the storage after a year of ten changes a day: \(try await byteCount()) bytes, \(before) before")
    }

    /// The size of all objects whose names contain `part`.
    private func byteCount(of part: String = "") async throws -> Int {
        var count = 0
        for name in try await storage.list("") where part.isEmpty || name.contains(part) {
            count += try await storage.read(name, atMost: 4 << 20)?.count ?? 0
        }
        return count
    }

    private func milliseconds(since start: ContinuousClock.Instant) -> Double {
        ((timer.now - start) / .microseconds(100)).rounded() / 10
    }

    private static func processorSeconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) }
}

extension Device {
    func use<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
        try await CurrentKeychain.$bound.withValue(keychain) { try await body() }
    }

    func add(_ number: Int, value: String) throws(KeychainFailure) {
        _ = try keychain.add(
            AddRequest(
                itemClass: .genericPassword, attributes: Item.attributes(number), secret: Data(value.utf8),
                accessControl: AccessControl(.whenUnlocked)))
    }

    func change(_ number: Int, value: String) throws(KeychainFailure) {
        try keychain.update(UpdateRequest(query: Item.query(number), secret: Data(value.utf8)))
    }

    fileprivate func value(_ number: Int) throws(KeychainFailure) -> String? {
        try Item.find(number, in: keychain)?.secret.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// A clock that the measurement moves.
private final class ManualClock: WallClock {
    private let seconds = Mutex(Date().timeIntervalSinceReferenceDate)

    func now() -> Double { seconds.withLock { $0 } }

    func advance(by difference: Double) { seconds.withLock { $0 += difference } }
}
