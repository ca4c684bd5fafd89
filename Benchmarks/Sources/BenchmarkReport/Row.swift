// SPDX-License-Identifier: Apache-2.0

/// One line of the table: how long one operation takes one contestant.
package struct Row: Codable, Equatable, Sendable {
    package let contestant: Contestant
    package let operation: KeychainOperation
    package let circumstance: Circumstance
    package let itemCount: Int
    package let threadCount: Int
    package let latency: Latency
    /// With several threads only: how many operations of all of them end in a second.
    package var operationsPerSecond: Double?
    /// With several threads only: that rate by the rate of one thread, measured in turns with it.
    package var rateAgainstOneThread: Double?
    /// This median by the median of Valet doing the same, in one thread and undisturbed.
    ///
    /// Where a whole process was measured: by that of `valet`.
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

    /// Nil without a sample.
    package init?(
        _ contestant: Contestant, _ operation: KeychainOperation, _ circumstance: Circumstance = .alone, itemCount: Int,
        threadCount: Int = 1,
        _ samples: Samples
    ) {
        guard let latency = Latency(samples) else { return nil }
        self.init(contestant, operation, circumstance, itemCount: itemCount, threadCount: threadCount, latency: latency)
    }

    /// Whether what goes on around it is the same.
    func isAlike(_ other: Row) -> Bool {
        (operation, circumstance, itemCount, threadCount) == (other.operation, other.circumstance, other.itemCount, other.threadCount)
    }
}
