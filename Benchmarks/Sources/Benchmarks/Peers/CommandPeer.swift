// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport

/// A program that is started anew for each operation, as people and scripts do.
protocol CommandPeer {
    var contestant: Contestant { get }
    /// How often each operation is measured. Few where one takes long.
    var sampleCount: Int { get }

    /// The command that does `operation`, or nil when there is none.
    ///
    /// `setNew` and `remove` of the same `index` belong together.
    func command(_ operation: KeychainOperation, _ index: Int) -> Command?
}
