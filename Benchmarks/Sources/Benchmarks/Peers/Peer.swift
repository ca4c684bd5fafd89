// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// Shared code of the peers.
///
/// Each peer keeps its data in a temporary folder, and may be absent.
enum Peer {
    /// The reason why a contestant cannot be measured on this machine.
    struct Unavailable: Error {
        let reason: String
    }

    static let itemCount = 1_000
    static let service = FilledValet.identifier

    /// Throws if one of `programs` is not installed.
    static func require(_ programs: [String], packages: String) throws {
        for program in programs where Command.find(program) == nil {
            throw Unavailable(reason: "\(program) is not installed (Debian: \(packages); Scripts/install-peers.sh)")
        }
    }

    /// Returns an environment without the files and settings of the user.
    static func environment(home: String, _ more: [String: String] = [:]) -> [String: String] {
        [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home + "/data", "XDG_CONFIG_HOME": home + "/config",
            "XDG_CACHE_HOME": home + "/cache", "TMPDIR": home,
        ].merging(more) { _, new in new }
    }

    /// Returns the path of a measuring program in C or Python.
    static func source(_ name: String) -> String {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Peers/\(name)").path
    }

    /// Converts an error to `Unavailable`, so that it does not fail the whole run.
    static func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as Command.Failure {
            throw Unavailable(reason: "\(failure.program): \(failure.reason)")
        }
    }
}
