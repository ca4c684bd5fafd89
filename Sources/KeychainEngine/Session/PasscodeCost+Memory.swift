// SPDX-License-Identifier: Apache-2.0
package import Keybag

extension PasscodeCost {
    /// The cost that takes so much memory; nil unless that is a power of two from 1 to 1,024 MiB.
    package init?(memoryMebibytes: Int) {
        guard (1...1_024).contains(memoryMebibytes), memoryMebibytes & (memoryMebibytes - 1) == 0 else { return nil }
        // 128 bytes × 8 × 2^10 are 1 MiB.
        self.init(roundsExponent: UInt8(10 + memoryMebibytes.trailingZeroBitCount), blockSize: 8, parallelism: 1)
    }
}
