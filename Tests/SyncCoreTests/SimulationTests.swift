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

    /// A device makes a key also for one whose removal is void for it.
    ///
    /// Another device goes on with that key, and learns then that the removal stands,
    /// which makes void what the first one has stated. It took two removals of removers and a testimony: one schedule in 270,000.
    @Test("A removed device cannot read what is sealed under a key that was made for it before its removal stood")
    func takenOverKey() {
        var options = Simulation.Options()
        options.schedules = .removals
        options.deviceCount = 6
        options.eventCount = 90
        #expect(Simulation.run(seed: 274_507, options: options).failures.isEmpty)
    }
}
