// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainSync
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// A clock whose time passes when a test says so.
private actor ManualPauses {
    private var sleeper: (seconds: Double, continuation: CheckedContinuation<Void, Never>)?
    private var observer: CheckedContinuation<Double, Never>?

    /// Waits for `end`.
    func sleep(_ seconds: Double) async {
        await withCheckedContinuation { continuation in
            sleeper = (seconds, continuation)
            observer?.resume(returning: seconds)
            observer = nil
        }
    }

    /// The length of the pause, once it has begun.
    func begun() async -> Double {
        if let sleeper { return sleeper.seconds }
        return await withCheckedContinuation { observer = $0 }
    }

    /// Ends the pause, and returns the length of the next one, once that has begun.
    func end() async -> Double {
        release()
        return await begun()
    }

    /// Ends the pause without waiting for another one.
    func release() {
        sleeper?.continuation.resume()
        sleeper = nil
    }
}

@Suite("Hints about changes in a shared folder", .timeLimit(.minutes(10)))
struct FolderHintTests {
    @Test("Objects of another process give hints, also in new directories", arguments: [true, false])
    func otherProcess(isLocal: Bool) async throws {
        var options = FolderOptions()
        if !isLocal {
            options.probe = FileSystemProbe(typeNumber: { _ in 0x6969 })
            options.sleep = { _ in try await Task.sleep(for: .milliseconds(1)) }
        }
        let folder = try await TemporaryFolder(options: options)
        var rest = [
            SampleObjects.batch(1), SampleObjects.batch(2), SampleObjects.names()[0], SampleObjects.circle + "/" + SampleObjects.batch(3),
        ]
        var awaited: String?
        for await _ in folder.storage.changes() {
            let names = try await folder.storage.list("")
            if let awaited, !names.contains(awaited) { continue }
            guard let next = rest.popLast() else { return }
            awaited = next
            let directory = folder.root + "/" + (next as NSString).deletingLastPathComponent
            let run = try ChildProcess.run(
                "/bin/sh", ["-c", "mkdir -p '\(directory)' && echo >'\(folder.root)/\(next)'"], environment: ["PATH": "/bin"])
            #expect(run.ending == .exited(0))
        }
    }

    @Test("A folder that is unmounted and mounted again gives hints, and is watched again")
    func replaced() async throws {
        var options = FolderOptions()
        options.sleep = { _ in try await Task.sleep(for: .milliseconds(1)) }
        let folder = try await TemporaryFolder(options: options)
        let aside = folder.directory.path + "/aside"
        enum Step { case watched, gone, back, created }
        var step = Step.watched
        let name = SampleObjects.batch(1)
        for await _ in folder.storage.changes() {
            let names = try? await folder.storage.list("")
            switch step {
            case .watched:
                step = .gone
                try FileManager.default.moveItem(atPath: folder.root, toPath: aside)
            case .gone:
                guard names == nil else { continue }
                step = .back
                try FileManager.default.moveItem(atPath: aside, toPath: folder.root)
            case .back:
                guard names == [] else { continue }
                step = .created
                try folder.write(name)
            case .created:
                if names == [name] { return }
            }
        }
    }

    @Test("Many names stand for a listing, and nothing hides that the storage was replaced")
    func merged() {
        let name = SampleObjects.batch(1)
        #expect(SyncStorageChange.created([name]).merged(with: .created([name])) == .created([name, name]))
        let many = SyncStorageChange.created(Array(repeating: name, count: 1_000))
        #expect(many.merged(with: .created([])) == many)
        #expect(many.merged(with: .created([name])) == .unknown)
        #expect(SyncStorageChange.created([name]).merged(with: .unknown) == .unknown)
        for change in [many, .unknown, .replaced] {
            #expect(change.merged(with: .replaced) == .replaced && SyncStorageChange.replaced.merged(with: change) == .replaced)
        }
    }

    @Test("Where the kernel does not report changes, pauses grow from a second to a minute, and a hint comes each hour")
    func pauses() async throws {
        let pauses = ManualPauses()
        var options = FolderOptions()
        options.probe = FileSystemProbe(typeNumber: { _ in 0x6969 })
        options.sleep = { seconds in
            await pauses.sleep(seconds)
            try Task.checkCancellation()
        }
        let folder = try await TemporaryFolder(options: options)
        let hints = Hints()
        let task = Task { await folder.storage.reportChanges { _ in hints.add() } }
        #expect(await pauses.begun() == 1)
        #expect(hints.take() == 1)
        // A change at the moment of the first look may have left the date as it is.
        #expect(await pauses.end() == 1)
        #expect(hints.take() == 1)
        for seconds in [2.0, 4, 8, 16, 32, 60, 60] { #expect(await pauses.end() == seconds) }
        #expect(hints.take() == 0)

        try folder.write(SampleObjects.batch(1))
        #expect(await pauses.end() == 1)
        #expect(hints.take() == 1)

        var elapsed = 0.0
        // The hint that repeats the last one is not the hourly one.
        elapsed += await pauses.end()
        #expect(hints.take() == 1)
        while hints.take() == 0, elapsed < 10_000 { elapsed += await pauses.end() }
        #expect((3_600...3_800).contains(elapsed))
        task.cancel()
        await pauses.release()
        await task.value
    }
}

private final class Hints: Sendable {
    private let count = Mutex(0)

    func add() { count.withLock { $0 += 1 } }

    /// Returns the number of hints since the last call.
    func take() -> Int {
        count.withLock { count in
            defer { count = 0 }
            return count
        }
    }
}
