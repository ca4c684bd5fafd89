// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainTestSupport
import PowerCutSimulation
import Testing

@Suite("Acknowledged writes survive power cuts", .blocking)
struct PowerCutTests {
    private static let size = Scale.pick(WorkloadPlan.Size.small, full: .medium)
    /// In addition to the two images of each moment.
    private static let arbitraryImageCount = Scale.pick(10, full: 400)
    /// Full scale examines every moment.
    private static let stride = Scale.pick(3, full: 1)

    @Test(
        "After a power cut at any moment, exactly the acknowledged writes are present and intact",
        arguments: Scale.pick([], full: [1]) + [UInt64.random(in: 0..<1_000_000_000)])
    func nothingLost(seed: UInt64) throws {
        let report = try PowerCutSimulation(seed: seed, size: Self.size).run(
            arbitraryImageCount: Self.arbitraryImageCount, stride: Self.stride)
        #expect(
            report.losses.isEmpty,
            "\(report.lossCount) losses: swift run PowerCut --seed \(seed) --size \(Self.size.rawValue) --images \(Self.arbitraryImageCount) --log \(report.keptLog ?? "")"
        )
        // The run reached all parts of its plan.
        #expect(report.judgedCount > Scale.pick(300, full: 1_000) && report.openedCount > Scale.pick(100, full: 500), "\(report)")
        #expect(report.absentCount > 0 && report.withPasscodeCount > Scale.pick(30, full: 100), "\(report)")
        #expect(report.refusals.isEmpty)
    }

    @Test("After a power cut at any moment, a synchronized store has records of exactly the writes that it has")
    func nothingUnrecorded() throws {
        let seed = UInt64.random(in: 0..<1_000_000_000)
        let report = try PowerCutSimulation(seed: seed, size: Self.size, synchronizes: true).run(
            arbitraryImageCount: Self.arbitraryImageCount, stride: Self.stride)
        #expect(
            report.losses.isEmpty,
            "\(report.lossCount) losses: swift run PowerCut --seed \(seed) --size \(Self.size.rawValue) --synchronized yes --images \(Self.arbitraryImageCount) --log \(report.keptLog ?? "")"
        )
        #expect(report.refusals.isEmpty)
    }

    @Test("The simulation finds a write without its record")
    func detectsLostRecord() throws {
        let report = try PowerCutSimulation(seed: 1, size: .small, synchronizes: true, fault: .lostRecord)
            .run(arbitraryImageCount: 10, stride: Scale.pick(8, full: 1), endsAtFirstLoss: true)
        #expect(report.lossCount > 0, "\(report)")
    }

    @Test(
        "If the creator is killed before it flushes the store's name, the next process acknowledges nothing before it has flushed it",
        arguments: [false, true])
    func unflushedNameOfCreator(failsDirectory: Bool) throws {
        let fault = PowerCutSimulation.PlantedFault.killedPublisher(failsDirectory: failsDirectory)
        let report = try PowerCutSimulation(seed: 5, size: .small, fault: fault).run(
            arbitraryImageCount: Scale.pick(8, full: 200), stride: Scale.pick(4, full: 1))
        #expect(report.losses.isEmpty, "\(report.lossCount) losses")
        #expect(report.refusals.isEmpty != failsDirectory, "\(report.refusals)")
    }

    @Test(
        "The simulation finds the loss when a flush is omitted",
        arguments: [PowerCutSimulation.PlantedFault.synchronousNormal, .noFlush(ending: "/"), .noFlush(ending: "-wal")]
            + Scale.pick([], full: [.noFlush(ending: ".key.new"), .noFlush(ending: ".db")]))
    func detectsMissingFlush(_ fault: PowerCutSimulation.PlantedFault) throws {
        // Only values so large that the -wal file is emptied in the midst of the work show a checkpoint without its flush.
        let size = fault == .noFlush(ending: ".db") ? .medium : Self.size
        let report = try PowerCutSimulation(seed: 1, size: size, fault: fault)
            .run(arbitraryImageCount: Scale.pick(400, full: 800), endsAtFirstLoss: true)
        #expect(report.lossCount > 0, "\(report)")
    }
}

@Suite("Failing disks: errors are reported, and acknowledged writes survive", .blocking)
struct FailingDiskTests {
    /// One call in so many fails.
    private static let stride = Scale.pick(100, full: 1)

    @Test(
        "If any disk call fails, the error is specific, the keychain opens afterwards, and acknowledged writes are present",
        arguments: ["EIO", "ENOSPC", "EROFS", "short"], ["once", "lasting"])
    func eachCall(_ failure: String, _ duration: String) throws {
        let offset = Int.random(in: 0..<Self.stride)
        let lines = try Self.run(failure, duration, stride: Self.stride, offset: offset)
        let wrong = lines.filter { $0.hasPrefix("wrong: ") }
        #expect(wrong.isEmpty, "\(failure) \(duration), calls that leave \(offset) when divided by \(Self.stride)")
        let refusedCount = lines.count { $0.contains(" refused: ") }
        if failure == "short" {
            // A second call transfers the rest.
            #expect(refusedCount == 0, "\(lines)")
        } else if duration == "lasting" || Self.stride == 1 {
            // Each of the few calls of a sparse run may be one whose single failure is harmless, such as a checkpoint's.
            #expect(refusedCount > 0, "\(lines)")
        }
        #expect(lines.last?.hasPrefix("calls ") == true, "\(lines.suffix(3))")
    }

    @Test("The check finds a write that the disk loses silently")
    func findsLoss() throws {
        let lines = try Self.run("lying", "once", stride: Scale.pick(20, full: 10), offset: 0)
        #expect(lines.contains { $0.hasPrefix("wrong: ") }, "\(lines)")
    }

    @Test(
        "After a failed flush whose data no later flush writes, acknowledged writes survive",
        arguments: [false, true])
    func flushFailsOnce(endsProcess: Bool) throws {
        let points = try PowerCutSimulation(seed: 3, size: .small).flushPoints(withBystander: endsProcess)
        let directory = try #require(points.first { $0.operation == 0 && $0.file == "*/home" })
        let writes = points.filter { $0.operation > 0 && $0.file.hasSuffix("-wal") && $0.occurrence == 1 }
        // After the last write another process closes the keychain without having written anything.
        let write = try #require(endsProcess ? writes.last : writes.first)
        var refusalCount = 0
        for point in Scale.pick(endsProcess ? [write] : [directory], full: points) {
            let fault = PowerCutSimulation.PlantedFault.failingFlush(point, endsProcess: endsProcess)
            let report = try PowerCutSimulation(seed: 3, size: .small, fault: fault).run(
                arbitraryImageCount: Scale.pick(4, full: 50), stride: Scale.pick(4, full: 1))
            #expect(report.losses.isEmpty, "\(point) failed: \(report.lossCount) losses")
            refusalCount += report.refusals.count
        }
        // A failed flush of a checkpoint may be ignored: the next checkpoint repeats it.
        #expect(refusalCount > 0)
    }

    private static func run(_ failure: String, _ duration: String, stride: Int, offset: Int) throws -> [Substring] {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = try WorkloadDirectories(directory)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "PowerCutWorkload"),
                ["failing", place.disk, place.log, failure, duration, String(stride), String(offset)], withinSeconds: 600)
            #expect(run.ending == .exited(0), "\(run.output)")
            return run.output.split(separator: "\n")
        }
    }
}
