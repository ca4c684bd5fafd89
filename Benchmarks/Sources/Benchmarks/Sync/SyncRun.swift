// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// A comparison of synchronization: one contestant after the other, so that none uses the machine while another is measured.
final class SyncRun {
    private let options: SyncOptions
    private let folder: ThrowAwayFolder
    private let start = Date()
    private let machine: Machine
    private let load = SyncRun.loadAverage
    private var keepsOthers = false
    private var figures: [SyncFigure] = []
    private var answers: [SyncAnswer] = []
    private var absences: [Comparison.Absence] = []

    static func run(_ options: SyncOptions) throws {
        if options.onlyRedraws {
            return try report(
                SyncComparison(json: Data(contentsOf: URL(filePath: options.output + "/compare-sync.json"))), to: options.output)
        }
        let folder = try ThrowAwayFolder()
        defer { folder.remove() }
        // Nothing of a run stays behind, whatever happened.
        Descendants.adopt()
        defer { Descendants.end() }
        let run = SyncRun(options: options, folder: folder)
        if options.contestants != SyncOptions.contestants { run.keepOthers() }
        for contestant in options.contestants {
            run.attempt(contestant, "") { try run.measure(contestant) }
            // An interrupted run leaves what it has.
            try save(run.comparison, to: options.output)
        }
        try report(run.comparison, to: options.output)
    }

    private init(options: SyncOptions, folder: ThrowAwayFolder) {
        self.options = options
        self.folder = folder
        machine = Machine.current(folder: folder.path)
    }

    /// Keeps what an earlier run found about the contestants that this one leaves out.
    private func keepOthers() {
        guard let data = try? Data(contentsOf: URL(filePath: options.output + "/compare-sync.json")),
            let earlier = try? SyncComparison(json: data)
        else { return }
        keepsOthers = true
        figures = earlier.figures.filter { !options.contestants.contains($0.contestant) }
        answers = earlier.answers.filter { !options.contestants.contains($0.contestant) }
        absences = earlier.absences.filter { !options.contestants.contains($0.contestant) }
    }

    private var comparison: SyncComparison {
        let setting = options.arguments.isEmpty ? "" : " COMPARE_OPTIONS=\"\(options.arguments.joined(separator: " "))\""
        return SyncComparison(
            date: start, command: "make compare-sync" + setting, machine: machine, figures: figures, answers: answers, absences: absences,
            notes: notes)
    }

    private func measure(_ contestant: Contestant) throws {
        Program.progress("\(contestant.rawValue) with \(options.itemCount) items ...")
        try use(contestant, itemCount: options.itemCount) { peer, home in
            let measurement = SyncMeasurement(peer, itemCount: options.itemCount, snapshots: home + "/snapshots")
            figures += try measurement.bytes(changeCount: options.sampleCount)
            figures += try measurement.writeToReadable(sampleCount: peer.hasAgents ? options.sampleCount : max(5, options.sampleCount / 5))
            figures += try measurement.merging(changeCount: options.divergedChangeCount, sampleCount: 3)
            let conflicts = SyncConflicts(peer, snapshot: try measurement.takeSnapshot())
            answers += try conflicts.answers()
            Program.progress("\(contestant.rawValue): \(options.missedChangeCount) missed changes ...")
            figures += try measurement.catchingUp(changeCount: options.missedChangeCount, sampleCount: 3)
        }
        guard let itemCount = options.largeItemCount else { return }
        let part = "with \(Quantity.grouped(itemCount)) items: "
        if let reason = Self.reasonAgainstLargeStore(contestant) {
            return absences.append(Comparison.Absence(contestant, reason: part + reason))
        }
        Program.progress("\(contestant.rawValue) with \(itemCount) items ...")
        attempt(contestant, part) {
            try use(contestant, itemCount: itemCount) { peer, home in
                figures += try SyncMeasurement(peer, itemCount: itemCount, snapshots: home + "/snapshots")
                    .bytes(changeCount: max(3, options.sampleCount / 5))
            }
        }
    }

    private static func reasonAgainstLargeStore(_ contestant: Contestant) -> String? {
        switch contestant {
        case .gopassWithGit: "not measured, because it has the same files and commits as pass"
        case .keePassXCMerge: "not measured, because its commands work for seconds with so many items"
        case .passWithGcrypt: "not measured, because each push sends the whole store again"
        default: nil
        }
    }

    /// Creates a contestant, and removes everything of it.
    private func use(_ contestant: Contestant, itemCount: Int, _ body: (any SyncPeer, _ home: String) throws -> Void) throws {
        let home = try folder.makeFolder(String(Contestant.allCases.firstIndex(of: contestant) ?? 0))
        defer { try? FileManager.default.removeItem(atPath: home) }
        let peer: any SyncPeer =
            switch contestant {
            case .valetSync: try ValetSync(home: home, itemCount: itemCount)
            case .keePassXCMerge: try KeePassXCSync(home: home, itemCount: itemCount)
            default: try PassSync(contestant, home: home, itemCount: itemCount)
            }
        defer { peer.end() }
        try body(peer, home)
    }

    /// Records that a contestant, or a part of it, is absent, and the reason.
    private func attempt(_ contestant: Contestant, _ part: String, _ body: () throws -> Void) {
        do {
            try body()
        } catch {
            let reason =
                switch error {
                case let unavailable as Peer.Unavailable: unavailable.reason
                case let failure as Command.Failure: "\(failure.program): \(failure.reason)"
                default: "\(error)"
                }
            absences.append(Comparison.Absence(contestant, reason: part + reason))
            Program.progress("\(contestant.rawValue): \(part)\(reason)")
        }
    }

    private var notes: [String] {
        [
            "The load average of the machine was \(load) at the start. Other processes lengthen times, and change no outcomes.",
            "All values have \(FilledValet.value.count) bytes. Both devices and the shared place are folders of one disk, without a network.",
            "Bytes of valet sync are those of all files that both devices write into the folder until both know of a change, and those of "
                + "KeePassXC its whole file. Bytes moved by git are those of the pack that it pushes.",
            "valet sync keeps replaced versions until a checkpoint is due; `SyncWorkload measure` lets a year pass.",
            "The missed changes of valet sync were written one at a time beside a running agent, which sends most of them in a file of its own.",
            "valet sync waits until what it writes is on the disk.",
            "git has been told to merge (pull --no-rebase). Its missed changes are one commit each, made by git fast-import.",
            "The missed changes of KeePassXC are in the history of its entries, which has ten versions of each.",
            "gopass is Debian's program of this name (github.com/aviau/gopass), not that of gopass.pw.",
            "The time from a write to the value includes all processes from set to get. valet sync has a running agent on each device.",
        ] + (keepsOthers ? ["The contestants were measured in several runs. The date and the load are those of the last one."] : [])
    }

    private static var loadAverage: String {
        let text = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? ""
        return text.split(separator: " ").first.map(String.init) ?? "unknown"
    }

    private static func save(_ comparison: SyncComparison, to folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try comparison.json().write(to: URL(filePath: folder + "/compare-sync.json"), options: .atomic)
    }

    private static func report(_ comparison: SyncComparison, to folder: String) throws {
        try FileHandle.standardOutput.write(contentsOf: Data((SyncTable(comparison).text + "\n").utf8))
        try save(comparison, to: folder)
        try Data(SyncChart(comparison).svg.utf8).write(to: URL(filePath: folder + "/compare-sync.svg"), options: .atomic)
        Program.progress("Written: \(folder)/compare-sync.json and compare-sync.svg")
    }
}
