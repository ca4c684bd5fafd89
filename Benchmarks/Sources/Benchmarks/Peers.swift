// SPDX-License-Identifier: Apache-2.0
import Foundation

/// libsecret and gnome-keyring, in a D-Bus session and a home of their own, so that nobody's keyring is touched.
enum Peers {
    /// Why a peer cannot be measured here.
    struct Unavailable: Error {
        let reason: String
    }

    static func measure(directory: String, itemCount: Int) throws -> Report {
        for program in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] where find(program) == nil {
            throw Unavailable(reason: "\(program) is not installed (Debian: libsecret-tools gnome-keyring dbus)")
        }
        let environment = [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "HOME": directory, "XDG_RUNTIME_DIR": directory,
            "XDG_DATA_HOME": directory + "/data", "XDG_CONFIG_HOME": directory + "/config", "XDG_CACHE_HOME": directory + "/cache",
        ]
        // The daemon leaves its session with the bus. Its words are no part of the report.
        let script = """
            printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 && exec "$0" libsecret "$1"
            """
        let output: Data
        do {
            output = try MeasuredProcess.output(
                of: "dbus-run-session", ["--", "/bin/sh", "-c", script, Program.path, String(itemCount)], environment: environment,
                timeoutSeconds: 600)
        } catch let failure as MeasuredProcess.Failure {
            throw Unavailable(reason: "\(failure.program): \(failure.reason)")
        }
        return try JSONDecoder().decode(Report.self, from: output)
    }

    static func find(_ program: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
