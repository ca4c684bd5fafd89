// SPDX-License-Identifier: Apache-2.0
import KeychainEngine
import Testing

@Suite("The pause between two batches of a rewrapping")
struct RewrappingPauseTests {
    @Test(
        "The pause is as long as the batch took, within a minimum and a maximum",
        arguments: [(0, 1_000_000), (7_000_000, 7_000_000), (50_000_000, 50_000_000), (UInt64.max, 50_000_000)] as [(UInt64, UInt64)])
    func length(batch: UInt64, pause: UInt64) {
        #expect(RewrappingPause.length(afterNanoseconds: batch) == pause)
    }
}
