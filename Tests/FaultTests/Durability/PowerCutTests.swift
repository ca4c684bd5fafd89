// SPDX-License-Identifier: Apache-2.0
import Foundation
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
            .noFlush(ending: "-wal"), .noFlush(ending: ".db"),
        ])
    func detectsMissingFlush(_ fault: PowerCutSimulation.PlantedFault) throws {
        let report = try PowerCutSimulation(seed: 1, size: .medium, fault: fault)
            .run(arbitraryImageCount: 800, endsAtFirstLoss: true)
        #expect(report.lossCount > 0, "\(report)")
    }
}

@Suite("A disk that fails is said to fail, and takes nothing that was acknowledged")
struct FailingDiskTests {
    /// `FAILING_CALLS=all swift test --filter FailingDiskTests` lets every call fail instead of every so many.
    private static let stride = ProcessInfo.processInfo.environment["FAILING_CALLS"] == "all" ? 1 : 5

    @Test(
        "Each call fails in turn: the answer is a clear one, the keychain opens afterwards, and what was acknowledged is there",
        arguments: ["EIO", "ENOSPC", "EROFS", "short"], ["once", "lasting"])
    func eachCall(_ failure: String, _ duration: String) throws {
        let offset = Int.random(in: 0..<Self.stride)
        let lines = try Self.run(failure, duration, stride: Self.stride, offset: offset)
        let wrong = lines.filter { $0.hasPrefix("wrong: ") }
        #expect(wrong.isEmpty, "\(failure) \(duration), calls that leave \(offset) when divided by \(Self.stride)")
        let refusedCount = lines.count { $0.contains(" refused: ") }
        // Half of the bytes are no failure: the other half follows.
        #expect((refusedCount == 0) == (failure == "short"), "\(lines)")
        #expect(lines.last?.hasPrefix("calls ") == true, "\(lines.suffix(3))")
    }

    @Test("The same check finds what is missing when a disk loses a write and says nothing")
    func findsLoss() throws {
        let lines = try Self.run("lying", "once", stride: 10, offset: 0)
        #expect(lines.contains { $0.hasPrefix("wrong: ") }, "\(lines)")
    }

    @Test(
        "A flush that fails, and then seems to succeed without having written anything, takes nothing that is acknowledged afterwards",
        arguments: [false, true])
    func flushFailsOnce(endsProcess: Bool) throws {
        // Which of the flushes of a run: the first 13 make the keychain, and some that are always taken belong to its first writes. The
        // 63rd is that of the last write: whoever comes after it closes the keychain without having written. The 88th is that of the
        // -wal file's name after the format was upgraded, which SQLite does not say has failed.
        let numbers = endsProcess ? 1..<64 : 1..<93
        let chosen = [11, 14, 17, endsProcess ? 63 : 88, Int.random(in: 1..<11), Int.random(in: numbers.dropFirst(17))]
        var refusalCount = 0
        for number in Self.stride == 1 ? Array(numbers) : chosen {
            let fault = PowerCutSimulation.PlantedFault.failingFlush(number: number, endsProcess: endsProcess)
            let report = try PowerCutSimulation(seed: 3, size: .small, fault: fault).run(arbitraryImageCount: 50)
            #expect(report.losses.isEmpty, "flush \(number) failed: \(report.lossCount) losses")
            refusalCount += report.refusals.count
        }
        // The flush of a checkpoint may fail unnoticed: the next checkpoint does it again.
        #expect(refusalCount > 0)
    }

    private static func run(_ failure: String, _ duration: String, stride: Int, offset: Int) throws -> [Substring] {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = try WorkloadDirectories(directory)
            let run = try ChildProcess.run(
                BuiltProgram.path(of: "PowerCutWorkload"),
                ["failing", place.disk, place.log, place.policy, failure, duration, String(stride), String(offset)], withinSeconds: 600)
            #expect(run.ending == .exited(0), "\(run.output)")
            return run.output.split(separator: "\n")
        }
    }
}
