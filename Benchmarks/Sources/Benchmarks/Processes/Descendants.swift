// SPDX-License-Identifier: Apache-2.0
import CBenchmarkShims
import Foundation

/// The child processes of this process, and orphans of those.
enum Descendants {
    /// Makes orphaned daemons children of this process from now on.
    static func adopt() { _ = benchmark_adopt_orphans() }

    /// Kills every remaining child, and the orphans that become children as a result.
    ///
    /// Call it after waiting for all processes whose results are needed.
    static func end() {
        // Bounded, because a child may be stuck in the kernel. The next round kills the children of killed children.
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
