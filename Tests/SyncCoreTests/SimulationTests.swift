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

    /// Schedules of removals that removed devices made, which failed; each is one in some hundred thousand.
    @Test(
        "Removals by removed devices",
        arguments: [
            // A device makes a key also for one whose removal is void for it. Another one goes on with that key, and learns then that the removal
            // stands, which makes void what the first one has stated: the removed device could read what is sealed under that key.
            274_507,
            // Two devices read a batch of one whose admission turns out to be void: the third one never read it.
            119_274,
        ] as [UInt64])
    func removalsByRemoved(seed: UInt64) {
        var options = Simulation.Options()
        options.schedules = .removals
        options.deviceCount = 6
        options.eventCount = 90
        #expect(Simulation.run(seed: seed, options: options).failures.isEmpty)
    }
}
