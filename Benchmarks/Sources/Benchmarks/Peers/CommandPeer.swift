// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// A program that runs once per operation, as for people and scripts.
protocol CommandPeer {
    var contestant: Contestant { get }
    /// The number of samples of each operation; small for slow ones.
    var sampleCount: Int { get }

    /// Returns the command that performs `operation`; nil if there is none.
    ///
    /// `remove` removes the item that `setNew` with the same `index` adds.
    func command(_ operation: KeychainOperation, _ index: Int) -> Command?
}
