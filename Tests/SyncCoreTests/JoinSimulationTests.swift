// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import SyncSimulation
import Testing

@Suite("The simulation of joining with a storage that has the code")
struct JoinSimulationTests {
    @Test("Both devices show the same number only if nothing was swapped (C6), and an honest storage always lets the device join")
    func attempts() {
        var shown = 0
        var swapped = 0
        var joined = 0
        for seed in 1...Scale.pick(2_000, full: 10_000) as ClosedRange<UInt64> {
            let report = JoinSimulation.run(seed: seed)
            #expect(report.failures.isEmpty, "seed \(seed)")
            shown += report.areNumbersShown ? 1 : 0
            swapped += report.isSwapped ? 1 : 0
            joined += report.isJoined ? 1 : 0
        }
        // The simulation reaches what it is meant to test.
        #expect(joined > 500 && swapped > 20 && shown > joined)
    }

    @Test("A storage that can search among few numbers finds no equal ones, because it is bound to its messages before it knows a number")
    func search() {
        for seed in 1...Scale.pick(40, full: 400) as ClosedRange<UInt64> {
            #expect(JoinSimulation.run(seed: seed, numberCount: 10_000).failures.isEmpty, "seed \(seed)")
        }
    }
}
