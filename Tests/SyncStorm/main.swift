// SPDX-License-Identifier: Apache-2.0
import Foundation
import SyncSimulation

/// `swift run SyncStorm`: random schedules of several devices, and a search through all small ones.
struct SyncStormCommand {
    private var seed: UInt64 = 1
    private var seedCount: UInt64 = 1_000
    private var options = Simulation.Options()
    private var isTraced = false
    private var isPlanted = false
    private var isExhaustive = false
    private var stepCount = 9
    /// The CPU time in which a planted fault has to be found.
    private var secondsPerFault = 60.0
    private var fault: String?
    /// How often each rare state has to be reached, or the run fails.
    private var leastCount = 0
    /// Every seed that is a multiple of this number uses the parts of the product.
    private var productionInterval: UInt64 = 20

    /// Returns nil if the arguments are invalid.
    init?(_ words: ArraySlice<String>) {
        var words = words
        while let name = words.popFirst() {
            switch name {
            case "--planted": isPlanted = true
            case "--exhaustive": isExhaustive = true
            case "--trace": isTraced = true
            case "--production": productionInterval = 1
            case "--simulated": productionInterval = .max
            case "--benign": options.schedules = .benign
            case "--removals": options.schedules = .removals
            case "--rejoins": options.schedules = .rejoins
            default:
                guard let value = words.popFirst() else { return nil }
                switch (name, UInt64(value)) {
                case ("--fault", _): (fault, isPlanted) = (value, true)
                case ("--seed", .some(let number)): seed = number
                case ("--seeds", .some(let number)): seedCount = number
                case ("--events", .some(let number)): options.eventCount = Int(clamping: number)
                case ("--devices", .some(let number)): options.deviceCount = Int(clamping: number)
                case ("--steps", .some(let number)): stepCount = Int(clamping: number)
                case ("--each-state", .some(let number)): leastCount = Int(clamping: number)
                case ("--seconds", .some(let number)): secondsPerFault = Double(number)
                default: return nil
                }
            }
        }
    }

    /// Returns the number of failures.
    mutating func run() -> Int { isPlanted ? runPlanted() : isExhaustive ? runExhaustive() : runSeeds() }

    private mutating func runSeeds() -> Int {
        let start = Self.seconds()
        var counters = Counters()
        var failureCount = 0
        var runCount = 0
        for seed in seed..<(seed + seedCount) {
            let isProduction = seed.isMultiple(of: productionInterval)
            options.parts = isProduction ? .production : .simulated
            // A repetition of such a seed may not fail again.
            options.isTraced = isTraced || isProduction
            let report = Simulation.run(seed: seed, options: options)
            counters.add(report.counters)
            runCount += 1
            if isTraced || isProduction && !report.failures.isEmpty { for line in report.trace { print(line) } }
            guard !report.failures.isEmpty else { continue }
            failureCount += 1
            Self.show("seed \(seed)\(isProduction ? " with production parts" : ""): \(report.failures.prefix(3).joined(separator: "; "))")
            if failureCount == 10 { break }
        }
        for (name, count) in counters.counts.sorted(by: { $0.key < $1.key }) where count < leastCount {
            failureCount += 1
            Self.show("reached only \(count) times: \(name)")
        }
        let seconds = Self.seconds() - start
        for (name, count) in counters.counts.sorted(by: { $0.key < $1.key }) { print("  \(count)\t\(name)") }
        print(
            """
            \(runCount) seeds, \(failureCount) failures, \(Int(seconds)) s of CPU time, \
            \(Int(Double(runCount) * 60 / seconds)) seeds a CPU minute
            """)
        return failureCount
    }

    private func runExhaustive() -> Int {
        var roster = ExhaustiveRoster()
        roster.run()
        print("roster: \(roster.setCount) sets of statements in every order, \(roster.failures.count) failures \(roster.failures)")
        var search = DatedBackSearch(seed: seed)
        search.run(scheduleCount: 200_000)
        print(
            "roster: \(search.caseCount) schedules with statements of removed devices, \(search.failures.count) failures \(search.failures)"
        )
        var failureCount = roster.failures.count + search.failures.count
        for steps in 1...stepCount {
            var merge = ExhaustiveMerge(stepCount: steps)
            merge.run()
            failureCount += merge.failures.count
            Self.show(
                "merge: \(merge.stateCount) states of at most \(steps) steps, \(merge.failures.count) failures, \(Int(Self.seconds())) s")
            for failure in merge.failures { print("  \(failure)") }
            if !merge.failures.isEmpty { break }
        }
        return failureCount
    }

    /// Runs seeds with each planted fault until one fails.
    private mutating func runPlanted() -> Int {
        let faults = PlantedFaults.names.filter { fault == nil || $0 == fault }
        guard !faults.isEmpty else {
            print("this build has no planted faults: build it with -Xswiftc -DSYNC_PLANTED")
            return 1
        }
        var missedCount = 0
        for name in faults {
            PlantedFaults.plant(name)
            options.parts = PlantedFaults.ofProductionParts.contains(name) ? .production : .simulated
            options.schedules = PlantedFaults.ofRejoins.contains(name) ? .rejoins : .all
            let start = Self.seconds()
            var seed = seed
            var failure: String?
            options.isTraced = isTraced
            while failure == nil, Self.seconds() - start < secondsPerFault {
                if PlantedFaults.ofJoining.contains(name) {
                    failure = JoinSimulation.run(seed: seed, numberCount: 10_000).failures.first
                } else if PlantedFaults.ofRemovals.contains(name) {
                    var search = DatedBackSearch(seed: seed)
                    search.run(scheduleCount: 1_000)
                    failure = search.failures.first
                } else {
                    let report = Simulation.run(seed: seed, options: options)
                    failure = report.failures.first
                    if failure != nil { for line in report.trace { print(line) } }
                }
                seed += 1
            }
            let seconds = ((Self.seconds() - start) * 10).rounded() / 10
            if failure == nil { missedCount += 1 }
            Self.show("\(failure == nil ? "MISSED" : "found ") \(name), \(seed - self.seed) seeds, \(seconds) s: \(failure ?? "")")
        }
        print("\(faults.count - missedCount) of \(faults.count) planted faults found")
        return missedCount
    }

    /// Prints a result as soon as it is known, also into a file.
    private static func show(_ line: String) {
        print(line)
        fflush(nil)
    }

    private static func seconds() -> Double { Double(clock()) / Double(CLOCKS_PER_SEC) }
}

guard var command = SyncStormCommand(CommandLine.arguments.dropFirst()) else {
    print(
        "usage: SyncStorm [--seed N] [--seeds M] [--each-state COUNT] [--events E] [--devices D] [--trace] [--production | --simulated] [--benign | --removals | --rejoins] [--exhaustive [--steps S]] [--planted [--fault NAME] [--seconds S]]"
    )
    exit(64)
}
exit(command.run() == 0 ? 0 : 1)
