// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import Valet

/// Measures Valet on a filled keychain.
///
/// Runs in a process of its own, whose keychain is in a temporary folder.
struct ValetMeasurement {
    private let subject: FilledValet

    init(itemCount: Int) throws {
        subject = try FilledValet(itemCount: itemCount)
    }

    /// Measures everything.
    ///
    /// The files for the limits are in `directory`.
    ///
    /// A limit and the operation compared with it are measured in turns, so that a change of the load affects both.
    func run(directory: String, sampleCount: Int) throws -> Report {
        let (valet, itemCount) = (subject.valet, subject.itemCount)
        var summaries: [Summary] = []
        let keys = (0..<sampleCount * 2).map { subject.spreadKey($0) }
        let rawLookup = try RawDatabase(path: directory + "/raw.db")
        try rawLookup.fill(rowCount: itemCount)
        var (raw, read) = (Samples(), Samples())
        let blockSize = 100
        for start in stride(from: 0, to: sampleCount, by: blockSize) {
            // The first runs of a block only warm the caches after the other operation, and are not counted.
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
        return Report(itemCount: itemCount, summaries: summaries, peakMemory: Double(try MemoryProbe.peakKibibytes()) / 1_024)
    }

    private func writes(directory: String, sampleCount: Int) throws -> [Summary] {
        let valet = subject.valet
        let bareAppend = try BareAppend(path: directory + "/appended")
        var (bare, overwrite, new) = (Samples(), Samples(), Samples())
        for index in 0..<sampleCount {
            try bare.measure { try bareAppend.append() }
            try overwrite.measure { try valet.setString(FilledValet.value, forKey: subject.spreadKey(index)) }
            try new.measure { try valet.setString(FilledValet.value, forKey: "new-\(index)") }
        }
        for index in 0..<sampleCount { try valet.removeObject(forKey: "new-\(index)") }
        return [bare.summary(.bareAppend), overwrite.summary(.overwrite), new.summary(.new)]
    }
}
