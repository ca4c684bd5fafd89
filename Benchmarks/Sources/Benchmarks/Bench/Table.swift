// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The table of the figures and the goals.
struct Table {
    var skipped: [String] = []

    func print(reports: [Report], lock: Report, processes: [Summary]) {
        for report in reports where report.summaries.contains(where: { $0.figure == .read }) {
            heading("\(report.itemCount) items")
            for summary in report.summaries { row(summary) }
            Swift.print("  peak memory of the process: \(number(report.peakMemory)) MiB")
        }
        heading("A keychain under a passcode, \(lock.itemCount) items")
        for summary in lock.summaries { row(summary) }
        if let without = lock.median(.readDeviceBound), let with = lock.median(.readUnderPasscode) {
            Swift.print("  what the key holder adds to a read: \(number(with - without)) µs")
        }
        let peer = reports.first { $0.median(.libsecretLookup) != nil }
        if let peer {
            heading("libsecret over gnome-keyring, \(peer.itemCount) items")
            for summary in peer.summaries { row(summary) }
        }
        if !processes.isEmpty {
            heading("Whole processes")
            for summary in processes { row(summary) }
        }

        let own = reports.filter { $0.median(.read) != nil }
        Swift.print("\n\(padded("Goals", 56))\(padded("is", 12, left: true))\(padded("goal", 10, left: true))")
        for goal in goals(own, peer, processes) { Swift.print("  " + goal) }
        for line in skipped { Swift.print("  SKIPPED  \(line)") }
    }

    private func goals(_ own: [Report], _ peer: Report?, _ processes: [Summary]) -> [String] {
        guard let small = own.first(where: { $0.itemCount == 1_000 }), let large = own.max(by: { $0.itemCount < $1.itemCount }) else {
            return []
        }
        let tenThousand = own.first { $0.itemCount == 10_000 }
        return [
            atMost("Valet.string / raw SQLite lookup", small.median(.read), small.median(.rawLookup), goal: 6),
            atLeast("libsecret lookup / Valet.string", peer?.median(.libsecretLookup), small.median(.read), goal: 50),
            atMost("Valet.setString, overwrite / bare append + fdatasync", small.median(.overwrite), small.median(.bareAppend), goal: 2),
            atMost("Valet.setString, new key / bare append + fdatasync", small.median(.new), small.median(.bareAppend), goal: 2),
            atLeast("libsecret store / Valet.setString, overwrite", peer?.median(.libsecretStore), small.median(.overwrite), goal: 200),
            atMost("Valet.string at \(large.itemCount) items / at 1000", large.median(.read), small.median(.read), goal: 2),
            atMost("Valet.setString at \(large.itemCount) items / at 1000", large.median(.overwrite), small.median(.overwrite), goal: 2),
            atMost("Valet.allKeys of 10000, in ms", tenThousand?.median(.allKeys).map { $0 / 1_000 }, 1, goal: 40),
            atMost(
                "valet get / secret-tool lookup", processes.first { $0.figure == .valetProcess }?.median, peer?.median(.secretToolProcess),
                goal: 2),
            atMost("peak memory at \(large.itemCount) items, in MiB", large.peakMemory, 1, goal: 60),
        ].compactMap(\.self)
    }

    private func atMost(_ name: String, _ value: Double?, _ limit: Double?, goal: Double) -> String? {
        guard let value, let limit else { return nil }
        return line(name, value / limit, "<= \(Int(goal))", isMet: value / limit <= goal)
    }

    private func atLeast(_ name: String, _ value: Double?, _ limit: Double?, goal: Double) -> String? {
        guard let value, let limit else { return nil }
        return line(name, value / limit, ">= \(Int(goal))", isMet: value / limit >= goal)
    }

    private func line(_ name: String, _ value: Double, _ goal: String, isMet: Bool) -> String {
        padded(name, 54) + padded(number(value), 12, left: true) + padded(goal, 10, left: true) + (isMet ? "   met" : "   MISSED")
    }

    private func heading(_ text: String) {
        Swift.print(
            "\n" + padded(text, 40) + padded("median µs", 14, left: true) + padded("p99 µs", 14, left: true)
                + padded("samples", 10, left: true))
    }

    private func row(_ summary: Summary) {
        Swift.print(
            "  " + padded(summary.figure.rawValue, 38) + padded(number(summary.median), 14, left: true)
                + padded(number(summary.p99), 14, left: true) + padded(String(summary.count), 10, left: true))
    }

    private func number(_ value: Double) -> String {
        value >= 1_000 ? String(Int(value.rounded())) : String((value * 10).rounded() / 10)
    }

    private func padded(_ text: String, _ width: Int, left: Bool = false) -> String {
        let space = String(repeating: " ", count: max(1, width - text.count))
        return left ? space + text : text + space
    }
}
