// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing

@Suite("Blocking calls", .timeLimit(.minutes(10)))
struct BlockingCallTests {
    /// The calls that ran, their order, and the maximum that ran concurrently.
    // Unchecked: `condition` guards the variables.
    private final class Record: @unchecked Sendable {
        private let condition = NSCondition()
        private var runningCount = 0
        private var isOpen = false
        private(set) var maximumRunningCount = 0
        private(set) var names: [String] = []

        func run(_ name: String, waitingForGate: Bool = false) {
            condition.lock()
            defer { condition.unlock() }
            names.append(name)
            runningCount += 1
            maximumRunningCount = max(maximumRunningCount, runningCount)
            condition.broadcast()
            while waitingForGate, !isOpen { condition.wait() }
            runningCount -= 1
        }

        func waitUntilRunning(_ count: Int) {
            condition.lock()
            defer { condition.unlock() }
            while runningCount < count { condition.wait() }
        }

        func openGate() {
            condition.lock()
            defer { condition.unlock() }
            isOpen = true
            condition.broadcast()
        }
    }

    @TaskLocal private static var taskLocalValue = "default"

    @Test("A call has the caller's task-local values")
    func taskLocals() async throws {
        let value = try await Self.$taskLocalValue.withValue("caller's") {
            try await withBlockingCalls { Self.taskLocalValue }
        }
        #expect(value == "caller's")
    }

    @Test("A thrown error is rethrown to the caller")
    func throwing() async {
        struct Stopped: Error {}
        await #expect(throws: Stopped.self) { try await withBlockingCalls { throw Stopped() } }
    }

    @Test("An idle executor runs the next call", arguments: [1, 4])
    func consecutiveCalls(maximumCallCount: Int) async {
        let executor = BlockingCallExecutor(maximumCallCount: maximumCallCount)
        let record = Record()
        for round in 0..<20 { await Task(executorPreference: executor) { record.run("\(round)") }.value }
        #expect(record.names == (0..<20).map { "\($0)" })
    }

    @Test("No more than the maximum number of calls run concurrently")
    func limit() async {
        let executor = BlockingCallExecutor(maximumCallCount: 2)
        let record = Record()
        let first = (0..<2).map { number in Task(executorPreference: executor) { record.run("\(number)", waitingForGate: true) } }
        await Task.detached(executorPreference: nil) { record.waitUntilRunning(2) }.value
        let later = (2..<6).map { number in Task(executorPreference: executor) { record.run("\(number)") } }
        record.openGate()
        for task in first + later { await task.value }
        #expect(record.maximumRunningCount == 2)
        #expect(Set(record.names).count == 6)
    }

    @Test("Calls up to the maximum run concurrently, even if the machine has fewer cores")
    func manyBlockedCalls() async {
        let executor = BlockingCallExecutor(maximumCallCount: 64)
        let record = Record()
        let calls = (0..<64).map { number in Task(executorPreference: executor) { record.run("\(number)", waitingForGate: true) } }
        await Task.detached(executorPreference: nil) { record.waitUntilRunning(64) }.value
        record.openGate()
        for call in calls { await call.value }
        #expect(record.maximumRunningCount == 64)
    }

    // One call at a time: with two, either could record its name first.
    @Test("The call with the highest priority runs next, and among equals the oldest")
    func order() async {
        let executor = BlockingCallExecutor(maximumCallCount: 1)
        let record = Record()
        let first = Task(executorPreference: executor) { record.run("first", waitingForGate: true) }
        await Task.detached(executorPreference: nil) { record.waitUntilRunning(1) }.value
        var later: [Task<Void, Never>] = []
        for name in ["background 1", "background 2"] {
            later.append(Task(executorPreference: executor, priority: .background) { record.run(name) })
        }
        later.append(Task(executorPreference: executor, priority: .high) { record.run("urgent") })
        record.openGate()
        for task in [first] + later { await task.value }
        #expect(record.names == ["first", "urgent", "background 1", "background 2"])
    }
}
