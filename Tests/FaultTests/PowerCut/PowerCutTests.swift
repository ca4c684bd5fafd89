// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import PowerCutSimulation
import Testing

@Suite("A power cut loses nothing that was acknowledged")
struct PowerCutTests {
    /// Beside two for every moment of a run.
    private static let arbitraryImageCount = 400

    @Test(
        "After a power cut at any moment every acknowledged write is there, whole, and nothing else is",
        arguments: [1, UInt64.random(in: 0..<1_000_000_000)])
    func nothingLost(seed: UInt64) throws {
        let report = try PowerCutSimulation(seed: seed, size: .medium).run(arbitraryImageCount: Self.arbitraryImageCount)
        #expect(
            report.losses.isEmpty,
            "\(report.lossCount) losses: swift run PowerCut --seed \(seed) --size medium --images \(Self.arbitraryImageCount) --log \(report.keptLog ?? "")"
        )
        // The run was one, and came to all its parts.
        #expect(report.judgedCount > 1_000 && report.openedCount > 500, "\(report)")
        #expect(report.absentCount > 0 && report.withPasscodeCount > 100, "\(report)")
        #expect(report.refusals.isEmpty)
    }

    @Test(
        "Killed before it could flush the name of the store that it made, a program is followed by one that acknowledges nothing until it is flushed",
        arguments: [false, true])
    func nameOfAnother(failsDirectory: Bool) throws {
        let fault = PowerCutSimulation.PlantedFault.killedPublisher(failsDirectory: failsDirectory)
        let report = try PowerCutSimulation(seed: 5, size: .small, fault: fault).run(arbitraryImageCount: 200)
        #expect(report.losses.isEmpty, "\(report.lossCount) losses")
        #expect(report.refusals.isEmpty != failsDirectory, "\(report.refusals)")
    }

    @Test(
        "The same simulation finds the loss when a flush is left out",
        arguments: [
            PowerCutSimulation.PlantedFault.synchronousNormal, .noFlush(ending: ".key.new"), .noFlush(ending: "/"),
            .noFlush(ending: "-wal"), .noFlush(ending: ".db"), .noFlushOfChecksums,
        ])
    func findsMissingFlush(_ fault: PowerCutSimulation.PlantedFault) throws {
        let report = try PowerCutSimulation(seed: 1, size: .medium, fault: fault)
            .run(arbitraryImageCount: 800, endsAtFirstLoss: true)
        #expect(report.lossCount > 0, "\(report)")
    }
}
