// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainTestSupport

/// Records one run of the workload, and examines the state after a power cut at every moment of it.
package struct PowerCutSimulation: Sendable {
    /// A fault in the workload, which proves that the simulation finds losses.
    package enum PlantedFault: Equatable, Sendable {
        case synchronousNormal
        /// Files with this suffix are never flushed; "/" means directories.
        case noFlush(ending: String)
        /// One flush fails, and no later flush writes the data that it was to write.
        ///
        /// `endsProcess`: after the failure was reported the process ends, as in a crash, and another process continues.
        case failingFlush(FlushPoint, endsProcess: Bool)
        /// The creator is killed before it flushes the store's name, and another process continues.
        /// `failsDirectory`: the other process cannot flush the directory.
        case killedPublisher(failsDirectory: Bool)
        /// A record of a change is erased although no round of synchronization has read it.
        case lostRecord
    }

    /// A power cut after which the keychain was in a wrong state.
    package struct Loss: Sendable, CustomStringConvertible {
        package let description: String
    }

    package struct Report: Sendable {
        package var eventCount = 0
        /// The number of images, and of distinct images that the engine opened.
        package var judgedCount = 0
        package var openedCount = 0
        /// The first losses.
        package var losses: [Loss] = []
        package var lossCount = 0
        /// The number of images without a keychain, and of those with a passcode.
        package var absentCount = 0
        package var withPasscodeCount = 0
        /// The path of the log, if there was a loss.
        package fileprivate(set) var keptLog: String?
        /// The refused operations.
        package var refusals: [String] = []
    }

    private static let lossLimit = 5

    package let seed: UInt64
    private let size: WorkloadPlan.Size
    private let plan: WorkloadPlan
    private let synchronizes: Bool
    private let fault: PlantedFault?

    /// `synchronizes`: the store records changes, and the records have to be those of the acknowledged writes.
    package init(seed: UInt64, size: WorkloadPlan.Size, synchronizes: Bool = false, fault: PlantedFault? = nil) {
        self.seed = seed
        self.size = size
        self.synchronizes = synchronizes
        self.fault = fault
        plan = WorkloadPlan(seed: seed, size: size, synchronizes: synchronizes)
    }

    /// Examines two images for every moment of a new run, and `arbitraryImageCount` with a random part of the unflushed changes.
    ///
    /// With a `stride` the moments after marks are examined, when a write that is not durable is already acknowledged, and of the others
    /// one in so many, chosen at random. The log is kept after a loss, because another run has other keys.
    package func run(arbitraryImageCount: Int, stride: Int = 1, endsAtFirstLoss: Bool = false) throws -> Report {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = try WorkloadDirectories(directory)
            let log = try record(in: place)
            try expectWhole(log, in: place)
            var report = try examine(log, in: place, arbitraryImageCount, stride: stride, endsAtFirstLoss)
            if report.lossCount > 0, fault == nil { report.keptLog = try keepLog(of: place) }
            return report
        }
    }

    /// Examines a run that was recorded earlier, with the same seed and size.
    package func run(logPath: String, arbitraryImageCount: Int) throws -> Report {
        let log = try DiskLog(contentsOfFile: logPath)
        let place = try WorkloadDirectories(withDisk: log.root)
        defer { place.remove() }
        return try examine(log, in: place, arbitraryImageCount, stride: 1, false)
    }

    /// Returns the flushes of an undisturbed run, in order.
    ///
    /// With a bystander, another connection to the keychain is open, as in a run with `endsProcess`. SQLite does not empty the -wal file
    /// while there is one.
    package func flushPoints(withBystander: Bool) throws -> [FlushPoint] {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = try WorkloadDirectories(directory)
            _ = try record(in: place, from: 0, withBystander ? ["bystander"] : [])
            return try DiskLog(contentsOfFile: place.log).flushPoints
        }
    }

    private func keepLog(of place: WorkloadDirectories) throws -> String {
        let directory = FileManager.default.temporaryDirectory.path
        let path = "\(directory)/power-cut-\(seed)-\(size.rawValue)-\(UInt32.random(in: 0 ... .max)).log"
        try FileManager.default.copyItem(atPath: place.log, toPath: path)
        return path
    }

    package enum Failure: Error {
        case workloadFailed(output: String)
        /// The recorder missed a change, so the images would be wrong.
        case logDiffersFromDisk(log: String, disk: String)
    }

    private func record(in place: WorkloadDirectories) throws -> DiskLog {
        // Another process continues where the first one ended.
        guard let next = try record(in: place, from: 0, faultArguments), try record(in: place, from: next, nextFaultArguments) != nil else {
            return try DiskLog(contentsOfFile: place.log)
        }
        throw Failure.workloadFailed(output: "the second process has ended early")
    }

    /// Returns the operation to continue with, or nil if the workload is complete.
    private func record(in place: WorkloadDirectories, from first: Int, _ fault: [String]) throws -> Int? {
        let run = try ChildProcess.run(
            BuiltProgram.path(of: "PowerCutWorkload"),
            ["record", place.disk, place.log, String(seed), size.rawValue, synchronizes ? "synchronized" : "local", String(first)] + fault,
            environment: ["KEYCHAIN_HOME": place.home])
        guard run.ending == .exited(0) else { throw Failure.workloadFailed(output: run.output) }
        return run.output.split(separator: "\n").first { $0.hasPrefix("next ") }.flatMap { Int($0.dropFirst("next ".count)) }
    }

    private var faultArguments: [String] {
        switch fault {
        case nil: []
        case .killedPublisher: ["ending-link", "/keychain.db"]
        case .synchronousNormal: ["synchronous-normal"]
        case .lostRecord: ["lost-record"]
        case .noFlush(let ending): ["no-flush", ending]
        case .failingFlush(let point, let endsProcess): [endsProcess ? "ending-flush" : "failing-flush"] + point.arguments
        }
    }

    private var nextFaultArguments: [String] {
        fault == .killedPublisher(failsDirectory: true) ? ["failing-flushes", "/home"] : []
    }

    private func examine(
        _ log: DiskLog, in place: WorkloadDirectories, _ arbitraryImageCount: Int, stride: Int, _ endsAtFirstLoss: Bool
    ) throws -> Report {
        var examination = Examination(plan: plan, place: place, seed: seed)
        examination.report.eventCount = log.events.count
        var generator = SeededGenerator(seed: seed &+ 1)
        // Of its own, so that the arbitrary images do not depend on the stride.
        var momentGenerator = SeededGenerator(seed: seed &+ 2)
        var expectation = PowerCutExpectation(plan)
        var model = DiskModel(log)
        // Spread evenly over the moments with unflushed changes.
        let uncertainCount = try Self.uncertainMomentCount(log)
        var (seenCount, drawnCount) = (0, 0)
        for (index, event) in log.events.enumerated() {
            try model.apply(event)
            var isExamined = Int.random(in: 0..<stride, using: &momentGenerator) == 0
            if case .mark(let mark) = event {
                isExamined = true
                try expectation.apply(mark: mark)
                if mark.hasPrefix("failed ") { examination.report.refusals.append(mark) }
            }
            var survivals: [Survival] = isExamined ? [.nothing] : []
            if model.hasUnflushedChanges {
                seenCount += 1
                if isExamined { survivals.append(.everything) }
                let dueCount = arbitraryImageCount * seenCount / max(1, uncertainCount)
                survivals += (drawnCount..<max(drawnCount, dueCount)).map { _ in .some(SeededGenerator(seed: generator.next())) }
                drawnCount = max(drawnCount, dueCount)
            }
            for survival in survivals {
                try examination.judge(model.image(survival), expectation, "after event \(index) of \(log.events.count), \(survival)")
                if endsAtFirstLoss, examination.report.lossCount > 0 { return examination.report }
            }
        }
        return examination.report
    }

    private static func uncertainMomentCount(_ log: DiskLog) throws -> Int {
        var model = DiskModel(log)
        return try log.events.count { event in
            try model.apply(event)
            return model.hasUnflushedChanges
        }
    }

    /// Checks that the log yields exactly the files that the workload left.
    private func expectWhole(_ log: DiskLog, in place: WorkloadDirectories) throws {
        var model = DiskModel(log)
        for event in log.events { try model.apply(event) }
        let (logged, found) = (model.image(.everything).withoutSharedMemory, try DiskImage(below: place.disk).withoutSharedMemory)
        guard logged == found else { throw Failure.logDiffersFromDisk(log: logged.summary, disk: found.summary) }
    }

    private struct Examination {
        let plan: WorkloadPlan
        let place: WorkloadDirectories
        let seed: UInt64
        let examiner: KeychainExaminer
        var report = Report()
        /// The state of each image, because the same image occurs at many moments.
        private var found: [Int: ExaminedKeychain] = [:]

        init(plan: WorkloadPlan, place: WorkloadDirectories, seed: UInt64) {
            self.plan = plan
            self.place = place
            self.seed = seed
            examiner = KeychainExaminer(home: place.home)
        }

        mutating func judge(_ image: DiskImage, _ expectation: PowerCutExpectation, _ moment: String) throws {
            report.judgedCount += 1
            // By hash, since the images themselves would take gigabytes.
            let hash = image.hashValue
            let found: ExaminedKeychain
            if let known = self.found[hash] {
                found = known
            } else {
                report.openedCount += 1
                try image.write(to: place.disk)
                // The likeliest first: each wrong passcode costs a key derivation.
                let likely = expectation.worlds.compactMap { $0?.passcode }
                found = examiner.look(passcodes: likely + plan.passcodes.filter { !likely.contains($0) })
                self.found[hash] = found
            }
            if case .absent = found { report.absentCount += 1 }
            if case .world(let world) = found, world.passcode != nil { report.withPasscodeCount += 1 }
            guard let complaint = expectation.complaint(about: found) else { return }
            report.lossCount += 1
            guard report.losses.count < PowerCutSimulation.lossLimit else { return }
            report.losses.append(
                Loss(description: "seed \(seed), \(moment), last word \"\(expectation.lastMark)\": \(complaint); files: \(image.summary)"))
        }
    }
}
