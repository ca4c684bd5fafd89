// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import SyncSimulation
import Testing

@testable import SyncCore

@Suite("Lost contents")
struct LostContentTests {
    enum Occasion: CaseIterable {
        case aDayLater, aPersonAsks
    }

    @Test("A damaged row and an absent one are restored from the storage once a day, and when a person asks", arguments: Occasion.allCases)
    func lostRows(occasion: Occasion) throws {
        var bench = try EngineBench()
        for name in 1...3 { bench.put(0, name, date: 5, value: UInt64(name)) }
        try bench.exchange([0, 1])
        bench.damage(1, 1)
        bench.loseRow(1, 2)
        bench.start(1)
        try bench.exchange([1, 0])
        #expect(bench.value(1, 2) == nil)
        switch occasion {
        case .aDayLater: bench.now += 86_400
        case .aPersonAsks: try bench.run(1, .command(.checkContents))
        }
        try bench.exchange([1, 0])
        #expect(bench.machines[1].ledger.state.rows.values.allSatisfy { !$0.isDamaged })
        for device in 0...1 { #expect((1...3).allSatisfy { bench.value(device, $0) == UInt64($0) }) }
        #expect(bench.copyCount(1) == 0)
    }

    @Test("A device that enters a circle sends the rows it has, and checks what it has opened just now no second time")
    func newDevice() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        bench.machines[0].ledger.state.changes = [:]
        try bench.exchange([0, 1])
        #expect(bench.value(1, 1) == 1)
        for device in 0...1 { #expect(try bench.contentCheck(device).isDue(at: bench.now) == false) }
    }

    @Test("An agent that is started again for each step comes to the end of a check")
    func interruptedCheck() throws {
        var limits = SyncLimits()
        limits.checkedVersions = 2
        var bench = try EngineBench(limits: limits)
        for name in 1...5 { bench.put(0, name, date: 5, value: UInt64(name)) }
        try bench.exchange([0, 1])
        bench.now += 86_400
        for _ in 0..<2 {
            try bench.step(1, .wake)
            #expect(try bench.contentCheck(1).isDue(at: bench.now))
            bench.start(1)
        }
        try bench.step(1, .wake)
        #expect(try bench.contentCheck(1).isDue(at: bench.now) == false)
    }

    @Test("An agent that is started again finds a loss again that it had found and not restored")
    func interruptedRestoration() throws {
        var bench = try EngineBench()
        bench.put(0, 1, date: 5, value: 1)
        try bench.exchange([0, 1])
        bench.damage(1, 1)
        bench.now += 86_400
        try bench.step(1, .wake)
        #expect(bench.machines[1].engine?.lostContents.count == 1)
        bench.start(1)
        try bench.exchange([1])
        #expect(bench.value(1, 1) == 1)
        #expect(bench.machines[1].engine?.lostContents == [])
        bench.start(1)
        try bench.exchange([1])
        #expect(try bench.contentCheck(1).isDue(at: bench.now) == false)
    }

    @Test(
        "A damaged record of the last check is reported",
        arguments: [[2], [1], [1, 0, 1], [1, 2], [1, 0] + [UInt8](repeating: 1, count: 57)] as [[UInt8]])
    func damagedRecord(bytes: [UInt8]) throws {
        var bench = try EngineBench()
        bench.machines[0].ledger.set(.contentCheck, to: bytes)
        let failure = #expect(throws: KeychainFailure.self) { try bench.run(0) }
        #expect(failure?.cause == (bytes == [2] ? .newerVersion : .damaged))
    }
}

extension EngineBench {
    fileprivate func contentCheck(_ device: Int) throws -> ContentCheck {
        try ContentCheck(try #require(machines[device].ledger.setting(.contentCheck)))
    }
}
