// SPDX-License-Identifier: Apache-2.0

/// The most memory that a process which did nothing but one operation ever had in use.
package struct MemoryRow: Codable, Equatable, Sendable {
    package let contestant: Contestant
    /// Nil: all of them.
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
