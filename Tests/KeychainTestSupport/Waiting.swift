// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// Runs each on a thread of its own, all at once, and gives their outcomes in no order.
///
/// No task of the pool is held up meanwhile, nor needed for any of them to begin: other tests may have all of its threads.
package func onThreads<Outcome: Sendable>(_ bodies: [@Sendable () -> Outcome]) async -> [Outcome] {
    guard !bodies.isEmpty else { return [] }
    let gathered = Gathered<Outcome>(count: bodies.count)
    return await withCheckedContinuation { continuation in
        for body in bodies {
            Thread.detachNewThread {
                if let all = gathered.add(body()) { continuation.resume(returning: all) }
            }
        }
    }
}

private final class Gathered<Outcome: Sendable>: Sendable {
    private let count: Int
    private let outcomes = Mutex<[Outcome]>([])

    init(count: Int) {
        self.count = count
    }

    /// All of them, once the last is there.
    func add(_ outcome: Outcome) -> [Outcome]? {
        outcomes.withLock { outcomes in
            outcomes.append(outcome)
            return outcomes.count == count ? outcomes : nil
        }
    }
}
