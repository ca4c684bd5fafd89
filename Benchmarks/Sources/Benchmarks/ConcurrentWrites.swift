// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// Measures how many durable writes a second several threads of one process make together, beside one thread.
///
/// Runs in a process of its own, whose keychain is in a temporary folder.
struct ConcurrentWrites {
    static let threadCount = 8
    private static let itemCount = 1_000
    private static let roundCount = 5

    let valet: Valet

    init() throws {
        guard let identifier = Identifier(nonEmpty: ValetMeasurement.identifier) else { throw CocoaError(.coderInvalidValue) }
        valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
    }

    /// Prints a line for each kind of write.
    func run(secondsPerRound: Double) throws {
        for index in 0..<Self.itemCount { try valet.setString("first", forKey: ValetMeasurement.key(index)) }
        let overwriting = { @Sendable (thread: Int, index: Int) in
            ValetMeasurement.key((index * Self.threadCount + thread) % Self.itemCount)
        }
        let run = UInt32.random(in: 0...UInt32.max)
        let adding = { @Sendable (thread: Int, index: Int) in "new-\(run)-\(thread)-\(index)" }
        print(try line("overwrite", secondsPerRound, key: overwriting))
        print(try line("new key", secondsPerRound, key: adding))
    }

    /// One thread and several take turns, so that a change in the machine's load touches both.
    private func line(_ name: String, _ seconds: Double, key: @escaping @Sendable (Int, Int) -> String) throws -> String {
        var (one, many): ([Double], [Double]) = ([], [])
        for round in 0..<Self.roundCount {
            one.append(try rate(threadCount: 1, seconds) { key($0, $1 + round * 1_000_000) })
            many.append(try rate(threadCount: Self.threadCount, seconds) { key($0, $1 + (round + Self.roundCount) * 1_000_000) })
        }
        let (single, together) = (one.sorted()[Self.roundCount / 2], many.sorted()[Self.roundCount / 2])
        return "\(name): 1 thread \(Int(single))/s, \(Self.threadCount) threads \(Int(together))/s, "
            + "ratio \((together / single * 100).rounded() / 100)"
    }

    /// Writes a second, of all threads together.
    private func rate(threadCount: Int, _ seconds: Double, key: @escaping @Sendable (Int, Int) -> String) throws -> Double {
        let counts = Counts()
        let ended = DispatchGroup()
        let start = ContinuousClock.now
        for thread in 0..<threadCount {
            ended.enter()
            Thread.detachNewThread { [valet] in
                defer { ended.leave() }
                var count = 0
                while ContinuousClock.now - start < .seconds(seconds) {
                    do {
                        try valet.setString("a token of about forty characters, as most", forKey: key(thread, count))
                    } catch {
                        return counts.fail(error)
                    }
                    count += 1
                }
                counts.add(count)
            }
        }
        ended.wait()
        let elapsed = (ContinuousClock.now - start) / .seconds(1)
        return try Double(counts.total()) / elapsed
    }

    private final class Counts: @unchecked Sendable {
        // Unchecked: the lock guards both.
        private let lock = NSLock()
        private var count = 0
        private var failure: (any Error)?

        func add(_ more: Int) { lock.withLock { count += more } }
        func fail(_ error: any Error) { lock.withLock { failure = error } }
        func total() throws -> Int {
            try lock.withLock {
                if let failure { throw failure }
                return count
            }
        }
    }
}
