// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainTestSupport

/// Records one run of the workload, and looks at what a power cut at any moment of it would have left.
package struct PowerCutSimulation: Sendable {
    /// A flaw that the workload is given, to prove that the simulation finds what it looks for.
    package enum PlantedFault: Equatable, Sendable {
        case synchronousNormal
        /// Files whose names end so are never flushed; "/" means directories.
        case noFlush(ending: String)
        /// One flush fails, and no later flush writes the data that it was to write.
        ///
        /// `endsProcess`: after the failure was reported the process ends, as in a crash, and another process continues.
        case failingFlush(FlushPoint, endsProcess: Bool)
        /// Whoever makes the keychain is killed before the store's name is flushed, and another process goes on.
        /// `failsDirectory`: which then can flush everything except for the directory with that name.
        case killedPublisher(failsDirectory: Bool)
    }

    /// A power cut after which something was not as it must be.
    package struct Loss: Sendable, CustomStringConvertible {
        package let description: String
    }

    package struct Report: Sendable {
        package var eventCount = 0
        /// Images that were judged, and how many different ones the engine opened.
        package var judgedCount = 0
        package var openedCount = 0
        /// The first ones.
        package var losses: [Loss] = []
        package var lossCount = 0
        /// How many images held no keychain, one without a passcode, and one with.
        package var absentCount = 0
        package var withPasscodeCount = 0
        /// Where the log is, if something was lost.
        package fileprivate(set) var keptLog: String?
        /// What the workload was refused.
        package var refusals: [String] = []
    }

    private static let lossLimit = 5

    package let seed: UInt64
    private let size: WorkloadPlan.Size
    private let plan: WorkloadPlan
    private let fault: PlantedFault?

    package init(seed: UInt64, size: WorkloadPlan.Size, fault: PlantedFault? = nil) {
        self.seed = seed
        self.size = size
        self.fault = fault
        plan = WorkloadPlan(seed: seed, size: size)
    }

    /// For every prefix of the log two images, and beside them so many with an arbitrary part of what was not flushed.
    ///
    /// A log in which a loss was found is kept, since each run has keys of its own.
    package func run(arbitraryImageCount: Int, endsAtFirstLoss: Bool = false) throws -> Report {
        try withTemporaryDirectory(inMemory: true) { directory in
            let place = try WorkloadDirectories(directory)
            let log = try record(in: place)
            try expectWhole(log, in: place)
            var report = try examine(log, in: place, arbitraryImageCount, endsAtFirstLoss)
            if report.lossCount > 0, fault == nil { report.keptLog = try keepLog(of: place) }
            return report
        }
    }

    /// The same once more for a run that was recorded before, by the same seed and size.
    package func run(logPath: String, arbitraryImageCount: Int) throws -> Report {
        let log = try DiskLog(contentsOfFile: logPath)
        let place = try WorkloadDirectories(withDisk: log.root)
        defer { place.remove() }
        return try examine(log, in: place, arbitraryImageCount, false)
    }

    /// Returns the flushes of an undisturbed run, in order.
    ///
    /// - Parameter withBystander: Whether another connection to the keychain is open, as in a run of which `endsProcess` is true. SQLite
    ///   does not empty the -wal file while there is one.
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
        /// The recorder missed something, so that nothing could be concluded.
        case logDiffersFromDisk(log: String, disk: String)
    }

    private func record(in place: WorkloadDirectories) throws -> DiskLog {
        // Another process goes on where the first one has ended.
        guard let next = try record(in: place, from: 0, faultArguments), try record(in: place, from: next, nextFaultArguments) != nil else {
            return try DiskLog(contentsOfFile: place.log)
        }
        throw Failure.workloadFailed(output: "the second process has ended early")
    }

    /// Nil unless the workload is to be continued.
    private func record(in place: WorkloadDirectories, from first: Int, _ fault: [String]) throws -> Int? {
        let run = try ChildProcess.run(
            BuiltProgram.path(of: "PowerCutWorkload"),
            ["record", place.disk, place.log, place.policy, String(seed), size.rawValue, String(first)] + fault,
            environment: ["KEYCHAIN_HOME": place.home])
        guard run.ending == .exited(0) else { throw Failure.workloadFailed(output: run.output) }
        return run.output.split(separator: "\n").first { $0.hasPrefix("next ") }.flatMap { Int($0.dropFirst("next ".count)) }
    }

    private var faultArguments: [String] {
        switch fault {
        case nil: []
        case .killedPublisher: ["ending-link", "/keychain.db"]
        case .synchronousNormal: ["synchronous-normal"]
        case .noFlush(let ending): ["no-flush", ending]
        case .failingFlush(let point, let endsProcess): [endsProcess ? "ending-flush" : "failing-flush"] + point.arguments
        }
    }

    private var nextFaultArguments: [String] {
        fault == .killedPublisher(failsDirectory: true) ? ["failing-flushes", "/home"] : []
    }

    private func examine(
        _ log: DiskLog, in place: WorkloadDirectories, _ arbitraryImageCount: Int, _ endsAtFirstLoss: Bool
    ) throws -> Report {
        var examination = Examination(plan: plan, place: place, seed: seed)
        examination.report.eventCount = log.events.count
        var generator = SeededGenerator(seed: seed &+ 1)
        var expectation = PowerCutExpectation(plan)
        var model = DiskModel(log)
        // Spread evenly over the moments at which there is something that a power cut may take.
        let uncertainCount = try Self.uncertainMomentCount(log)
        var (seenCount, drawnCount) = (0, 0)
        for (index, event) in log.events.enumerated() {
            try model.apply(event)
            if case .mark(let mark) = event {
                try expectation.apply(mark: mark)
                if mark.hasPrefix("failed ") { examination.report.refusals.append(mark) }
            }
            var survivals: [Survival] = [.nothing]
            if model.hasUnflushedChanges {
                seenCount += 1
                survivals.append(.everything)
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

    /// All that the log says, and nothing else, is what the workload has left.
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
        /// What was found in each image: the same one comes up at many moments.
        private var found: [Int: ExaminedKeychain] = [:]

        init(plan: WorkloadPlan, place: WorkloadDirectories, seed: UInt64) {
            self.plan = plan
            self.place = place
            self.seed = seed
            examiner = KeychainExaminer(home: place.home, policyPath: place.policy)
        }

        mutating func judge(_ image: DiskImage, _ expectation: PowerCutExpectation, _ moment: String) throws {
            report.judgedCount += 1
            // By a hash of all names and contents, since the images themselves would take gigabytes.
            let hash = image.hashValue
            let found: ExaminedKeychain
            if let known = self.found[hash] {
                found = known
            } else {
                report.openedCount += 1
                try image.write(to: place.disk)
                // The likeliest first: each wrong one costs a derivation.
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
