// SPDX-License-Identifier: Apache-2.0

/// One row of the table: the duration of one operation of one contestant.
package struct Row: Codable, Equatable, Sendable {
    package let contestant: Contestant
    package let operation: KeychainOperation
    package let circumstance: Circumstance
    package let itemCount: Int
    package let threadCount: Int
    package let latency: Latency
    /// With several threads only: the operations of all threads per second.
    package var operationsPerSecond: Double?
    /// With several threads only: that rate divided by the rate of one thread, measured in turns.
    package var rateAgainstOneThread: Double?
    /// This median divided by the median of the same operation of Valet, in one thread without a second process.
    ///
    /// For a whole process: divided by the median of `valet`.
    package internal(set) var ratioToValet: Double?

    package init(
        _ contestant: Contestant, _ operation: KeychainOperation, _ circumstance: Circumstance = .alone, itemCount: Int,
        threadCount: Int = 1,
        latency: Latency
    ) {
        self.contestant = contestant
        self.operation = operation
        self.circumstance = circumstance
        self.itemCount = itemCount
        self.threadCount = threadCount
        self.latency = latency
    }

    /// Returns nil without a sample.
    package init?(
        _ contestant: Contestant, _ operation: KeychainOperation, _ circumstance: Circumstance = .alone, itemCount: Int,
        threadCount: Int = 1,
        _ samples: Samples
    ) {
        guard let latency = Latency(samples) else { return nil }
        self.init(contestant, operation, circumstance, itemCount: itemCount, threadCount: threadCount, latency: latency)
    }

    /// Whether the circumstances are the same.
    func isAlike(_ other: Row) -> Bool {
        (operation, circumstance, itemCount, threadCount) == (other.operation, other.circumstance, other.itemCount, other.threadCount)
    }
}
