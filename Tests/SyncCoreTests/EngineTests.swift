// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncCore
import SyncSimulation
import Testing

@Suite("The engine, by schedules written by hand")
struct EngineTests {
    @Test("A write that was recorded while its class was locked gets its date from the own log after a restore")
    func dateFromOwnLog() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        bench.lock(0, Set(Lane.allCases))
        try bench.step(0, .itemsChanged)
        let snapshot = bench.machines[0].ledger.state
        bench.lock(0, [])
        try bench.run(0)
        bench.machines[0].ledger.state = snapshot
        bench.lock(0, [])
        bench.start(0)
        // Concurrent and later, so visible.
        bench.put(1, 1, date: 9, value: 2)
        try bench.exchange([0, 1])
        #expect(bench.value(0, 1) == 2)
        #expect(bench.value(1, 1) == 2)
        #expect(bench.copyCount(0) == 1)
    }
}
