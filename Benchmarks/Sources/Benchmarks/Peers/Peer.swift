// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// What others have in common: each keeps everything below a throw-away folder, and may be absent.
enum Peer {
    /// Why a contestant cannot be measured here.
    struct Unavailable: Error {
        let reason: String
    }

    static let itemCount = 1_000
    static let service = FilledValet.identifier

    /// Throws when one of `programs` is not there.
    static func require(_ programs: [String], packages: String) throws {
        for program in programs where Command.find(program) == nil {
            throw Unavailable(reason: "\(program) is not installed (Debian: \(packages); Scripts/install-peers.sh)")
        }
    }

    /// An environment in which a program finds nothing of the person who runs this.
    static func environment(home: String, _ more: [String: String] = [:]) -> [String: String] {
        [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "HOME": home, "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": home, "XDG_DATA_HOME": home + "/data", "XDG_CONFIG_HOME": home + "/config",
            "XDG_CACHE_HOME": home + "/cache", "TMPDIR": home,
        ].merging(more) { _, new in new }
    }

    /// Our sources for peers, which are built or run where they are measured.
    static func source(_ name: String) -> String {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Peers/\(name)").path
    }

    /// Says what failed instead of failing the whole run.
    static func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as Command.Failure {
            throw Unavailable(reason: "\(failure.program): \(failure.reason)")
        }
    }
}
