// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// Fills a keychain and measures Valet on it.
///
/// Runs in a process of its own, whose keychain is in a temporary folder.
struct ValetMeasurement {
    static let identifier = "benchmark"

    let valet: Valet
    let itemCount: Int

    init(itemCount: Int) throws {
        guard let identifier = Identifier(nonEmpty: Self.identifier) else { throw CocoaError(.coderInvalidValue) }
        valet = Valet.valet(with: identifier, accessibility: .whenUnlocked)
        self.itemCount = itemCount
    }

    static func key(_ index: Int) -> String { "account-\(index)" }

    private static let value = "a token of about forty characters, as most"

    func fill() throws {
        for index in 0..<itemCount { try valet.setString(Self.value, forKey: Self.key(index)) }
    }

    /// Measures everything; writes what the limits need into `directory`.
    ///
    /// A limit and what is held against it take turns, so that a change in the machine's load touches both.
    func run(directory: String, sampleCount: Int) throws -> Report {
        var summaries: [Summary] = []
        let keys = (0..<sampleCount * 2).map { Self.key(($0 &* 7_919) % itemCount) }
        let rawLookup = try RawLookup(path: directory + "/raw.db", rowCount: itemCount)
        var (raw, read) = (Samples(), Samples())
        let blockSize = 100
        for start in stride(from: 0, to: sampleCount, by: blockSize) {
            // The first runs of a block find the caches filled with the other's data and are not counted.
            raw.append(try Samples.measure(blockSize) { try rawLookup.lookUp((start + $0) &* 7_919 % itemCount) })
            read.append(try Samples.measure(blockSize) { _ = try valet.string(forKey: keys[start + $0]) })
        }
        summaries.append(raw.summary(.rawLookup))
        summaries.append(read.summary(.read))
        summaries.append(try Samples.measure(sampleCount) { _ = try valet.containsObject(forKey: keys[$0]) }.summary(.contains))
        summaries.append(try Samples.measure(sampleCount) { _ = try valet.containsObject(forKey: "absent-\($0)") }.summary(.missing))
        summaries += try writes(directory: directory, sampleCount: max(200, sampleCount / 20))
        if itemCount <= 10_000 {
            summaries.append(try Samples.measure(20) { _ in _ = try valet.allKeys() }.summary(.allKeys))
        }
        return Report(itemCount: itemCount, summaries: summaries, peakMemory: try Self.peakMemory())
    }

    private func writes(directory: String, sampleCount: Int) throws -> [Summary] {
        let bareAppend = try BareAppend(path: directory + "/appended")
        var (bare, overwrite, new) = (Samples(), Samples(), Samples())
        for index in 0..<sampleCount {
            try bare.measure { try bareAppend.append() }
            try overwrite.measure { try valet.setString(Self.value, forKey: Self.key((index &* 7_919) % itemCount)) }
            try new.measure { try valet.setString(Self.value, forKey: "new-\(index)") }
        }
        for index in 0..<sampleCount { try valet.removeObject(forKey: "new-\(index)") }
        return [bare.summary(.bareAppend), overwrite.summary(.overwrite), new.summary(.new)]
    }

    private static func peakMemory() throws -> Double {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return Double(line?.split(whereSeparator: \.isWhitespace).dropFirst().first ?? "").map { $0 / 1_024 } ?? 0
    }
}
