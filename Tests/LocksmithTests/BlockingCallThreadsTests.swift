// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Locksmith

@Suite("Threads for calls that wait", .timeLimit(.minutes(2)))
struct BlockingCallThreadsTests {
    /// What ran, in which order, and how much at once.
    private final class Record: @unchecked Sendable {
        // Unchecked: what changes is touched only while `condition` is held.
        private let condition = NSCondition()
        private var running = 0
        private var isOpen = false
        private(set) var greatest = 0
        private(set) var names: [String] = []

        func run(_ name: String, waitingForGate: Bool = false) {
            condition.lock()
            defer { condition.unlock() }
            names.append(name)
            running += 1
            greatest = max(greatest, running)
            condition.broadcast()
            while waitingForGate, !isOpen { condition.wait() }
            running -= 1
        }

        func waitUntilRunning(_ count: Int) {
            condition.lock()
            defer { condition.unlock() }
            while running < count { condition.wait() }
        }

        func open() {
            condition.lock()
            defer { condition.unlock() }
            isOpen = true
            condition.broadcast()
        }
    }

    @Test("A thread that ended makes room for the next")
    func ending() async throws {
        let threads = BlockingCallThreads(greatestThreadCount: 1, idleSeconds: 0.02)
        let record = Record()
        for round in 0..<4 {
            await Task(executorPreference: threads) { record.run("\(round)") }.value
            try await Task.sleep(for: .milliseconds(200))
        }
        #expect(record.names == ["0", "1", "2", "3"])
    }

    @Test("An idle thread is woken by the next call")
    func waking() async {
        let threads = BlockingCallThreads(greatestThreadCount: 4, idleSeconds: 3_600)
        let record = Record()
        for round in 0..<20 { await Task(executorPreference: threads) { record.run("\(round)") }.value }
        #expect(record.names.count == 20)
    }

    @Test("No more calls run at once than there may be threads")
    func limit() async {
        let threads = BlockingCallThreads(greatestThreadCount: 2, idleSeconds: 1)
        let record = Record()
        let first = (0..<2).map { number in Task(executorPreference: threads) { record.run("\(number)", waitingForGate: true) } }
        await Task.detached(executorPreference: nil) { record.waitUntilRunning(2) }.value
        let later = (2..<6).map { number in Task(executorPreference: threads) { record.run("\(number)") } }
        record.open()
        for task in first + later { await task.value }
        #expect(record.greatest == 2)
        #expect(Set(record.names).count == 6)
    }

    // One thread: of two, either may be the first to say what it runs.
    @Test("The most urgent call is next, and of those the one that waits longest")
    func order() async {
        let threads = BlockingCallThreads(greatestThreadCount: 1, idleSeconds: 1)
        let record = Record()
        let first = Task(executorPreference: threads) { record.run("first", waitingForGate: true) }
        await Task.detached(executorPreference: nil) { record.waitUntilRunning(1) }.value
        var later: [Task<Void, Never>] = []
        for name in ["background 1", "background 2"] {
            later.append(Task(executorPreference: threads, priority: .background) { record.run(name) })
        }
        later.append(Task(executorPreference: threads, priority: .high) { record.run("urgent") })
        record.open()
        for task in [first] + later { await task.value }
        #expect(record.names == ["first", "urgent", "background 1", "background 2"])
    }
}
