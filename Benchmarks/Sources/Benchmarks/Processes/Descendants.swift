// SPDX-License-Identifier: Apache-2.0
import CBenchmarkShims
import Foundation

/// The processes that this one started, and those that they left behind.
enum Descendants {
    /// From now on a daemon that is left behind becomes a child of this process.
    static func adopt() { _ = benchmark_adopt_orphans() }

    /// Kills every child that is still there, and those that become children by that.
    ///
    /// Called when all that is still wanted has been waited for.
    static func end() {
        // Bounded, should a child be stuck in the kernel; the children of a killed child come in the next round.
        for _ in 0..<100 {
            let children = children()
            if children.isEmpty { return }
            for child in children {
                kill(child, SIGKILL)
                var status: Int32 = 0
                _ = unsafe benchmark_wait(child, 5_000, &status)
            }
        }
    }

    private static func children() -> [pid_t] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return tasks.flatMap { task in
            let text = (try? String(contentsOfFile: "/proc/self/task/\(task)/children", encoding: .utf8)) ?? ""
            return text.split(whereSeparator: \.isWhitespace).compactMap { pid_t($0) }
        }
    }
}
