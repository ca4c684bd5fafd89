// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import SyncSimulation
import Testing

@Suite("The simulation of synchronizing devices")
struct SimulationTests {
    @Test("Random schedules come to rest with equal states")
    func seeds() {
        var counters = Counters()
        for seed in 1...Scale.pick(8, full: 40) as ClosedRange<UInt64> {
            let report = Simulation.run(seed: seed, options: Simulation.Options())
            #expect(report.failures.isEmpty, "seed \(seed)")
            counters.add(report.counters)
        }
        #expect(counters.counts["finished an absorption", default: 0] > 0)
        #expect(counters.counts["ignored a version that was known to be replaced", default: 0] > 0)
    }

    @Test("The same seed gives the same bytes")
    func determinism() {
        for seed in 1...2 as ClosedRange<UInt64> {
            let first = Simulation.run(seed: seed, options: Simulation.Options())
            let second = Simulation.run(seed: seed, options: Simulation.Options())
            #expect(first.fingerprint == second.fingerprint)
        }
    }
}
