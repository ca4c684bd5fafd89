// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@Suite("Many processes with many threads each, at the same keys")
struct ManyAtOnceTests {
    private static let processCount = 8
    private static let threadCount = 8
    /// Longer by an environment variable: `KEYCHAIN_TEST_SECONDS=60 swift test --filter ManyAtOnceTests`.
    private static let seconds = ProcessInfo.processInfo.environment["KEYCHAIN_TEST_SECONDS"].flatMap(Double.init) ?? 4
    /// The time that a call waits for others, as `StoreOptions` has it by default.
    private static let deadlineNanoseconds: UInt64 = 5_000_000_000
    /// Eight idle readers and the writer, each with the database and its -wal, and with a descriptor that SQLite keeps for the next one that
    /// opens the file, since closing it would drop the locks of all; the -shm of the process, and what was open before.
    private static let greatestDescriptorCount = 9 * 3 + 1 + 16

    private struct Run {
        var operations: [RecordedOperation] = []
        var descriptorCounts: [Int] = []
    }

    private static func run(_ options: [String] = []) throws -> Run {
        try withTemporaryDirectory { directory in
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let children = try (0..<processCount).map { process in
                try ChildProcess(
                    program, ["mixed-operations", String(process), String(threadCount), String(seconds)] + options,
                    environment: ["KEYCHAIN_HOME": directory + "/home"])
            }
            for child in children { #expect(try child.readLine() == "ready") }
            for child in children { child.send("go") }
            var run = Run()
            for child in children {
                while let line = try child.readLine(withinSeconds: seconds + 120), line != "end" {
                    if let operation = RecordedOperation(line) {
                        run.operations.append(operation)
                    } else if line.hasPrefix("descriptors "), let count = Int(line.dropFirst("descriptors ".count)) {
                        run.descriptorCounts.append(count)
                    } else {
                        Issue.record("\(line)")
                    }
                }
                #expect(try child.waitUntilEnded() == .exited(0))
            }
            return run
        }
    }

    @Test("Every key has a history of one caller after another; nobody is turned away early, and no descriptor stays open")
    func linearizable() throws {
        let run = try Self.run()
        try LinearizabilityChecker.check(run.operations)
        for operation in run.operations {
            guard case .failed(let status) = operation.answer else { continue }
            let waited = operation.endNanoseconds - operation.startNanoseconds
            #expect(
                status == KeychainStatus.notAvailable.rawValue && waited >= Self.deadlineNanoseconds,
                "\(operation) after \(waited) ns")
        }
        // The run was one: calls of every sort that succeeded, and most of them at the same time as another at the same key.
        let succeeded = Set(run.operations.filter { $0.answer != .notFound && $0.answer != .duplicate }.map(\.verb))
        #expect(succeeded == Set(RecordedOperation.Verb.allCases))
        #expect(run.operations.count > Self.processCount * Self.threadCount)
        #expect(run.descriptorCounts.count == 2 * Self.processCount)
        #expect(run.descriptorCounts.allSatisfy { $0 <= Self.greatestDescriptorCount }, "\(run.descriptorCounts)")
    }

    @Test("The check finds a cache that nobody invalidates")
    func planted() throws {
        let operations = try Self.run(["stale"]).operations
        #expect(throws: LinearizabilityChecker.Violation.self) { try LinearizabilityChecker.check(operations) }
    }
}
