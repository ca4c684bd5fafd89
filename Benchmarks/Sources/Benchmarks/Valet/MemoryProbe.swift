// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// A process that repeats one operation and reports its peak memory.
enum MemoryProbe {
    static func run(_ operation: KeychainOperation, itemCount: Int) throws -> Int {
        let subject = try FilledValet(itemCount: itemCount)
        for index in 0..<(operation == .allKeys ? 3 : 200) {
            // Removing requires items.
            if operation == .remove { try subject.perform(.setNew, index) }
            try subject.perform(operation, index)
        }
        let peak = try peakKibibytes()
        if operation == .setNew { for index in 0..<200 { try subject.perform(.remove, index) } }
        return peak
    }

    /// The peak memory of this process.
    static func peakKibibytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
    }
}
