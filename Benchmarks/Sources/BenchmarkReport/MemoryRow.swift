// SPDX-License-Identifier: Apache-2.0

/// The peak memory of a process that performed only one operation.
package struct MemoryRow: Codable, Equatable, Sendable {
    package let contestant: Contestant
    /// Nil for all operations.
    package let operation: KeychainOperation?
    package let itemCount: Int
    package let megabytes: Double

    package init(_ contestant: Contestant, _ operation: KeychainOperation?, itemCount: Int, kibibytes: Int) {
        self.contestant = contestant
        self.operation = operation
        self.itemCount = itemCount
        megabytes = Double(kibibytes) * 1_024 / 1_000_000
    }
}
