// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

extension Machine {
    /// Returns a description of this machine.
    ///
    /// `folder` is the folder that contains all measured data.
    static func current(folder: String) -> Machine {
        let memory = value("MemTotal", in: "/proc/meminfo").flatMap { Double($0.split(separator: " ").first ?? "") } ?? 0
        return Machine(
            processor: value("model name", in: "/proc/cpuinfo") ?? "unknown processor", coreCount: ProcessInfo.processInfo.processorCount,
            memoryGigabytes: (memory * 1_024 / 1e9).rounded(), kernel: firstLine("/proc/sys/kernel/osrelease") ?? "unknown",
            operatingSystem: value("PRETTY_NAME", in: "/etc/os-release", separator: "=") ?? "unknown system",
            fileSystem: fileSystem(of: folder) ?? "unknown file system")
    }

    /// Returns the type of the file system of `folder`: the one with the longest mount point above it.
    private static func fileSystem(of folder: String) -> String? {
        let path = URL(filePath: folder).resolvingSymlinksInPath().path + "/"
        let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
        // A later mount hides an earlier one at the same path, so of equal paths the last counts.
        var best: (length: Int, type: String)?
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2 else { continue }
            let point = fields[1].replacingOccurrences(of: "\\040", with: " ")
            let isAbove = path.hasPrefix(point.hasSuffix("/") ? point : point + "/")
            if isAbove, point.count >= best?.length ?? 0 { best = (point.count, String(fields[2])) }
        }
        return best?.type
    }

    /// Returns the value after the first `name` in a file of names and values.
    private static func value(_ name: String, in path: String, separator: Character = ":") -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: separator, maxSplits: 1)
            guard parts.count == 2, parts[0].trimmingCharacters(in: .whitespaces) == name else { continue }
            return parts[1].trimmingCharacters(in: CharacterSet(charactersIn: " \t\""))
        }
        return nil
    }

    private static func firstLine(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").first.map(String.init)
    }
}
