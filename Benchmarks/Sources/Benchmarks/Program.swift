// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// The benchmark: measures in child processes, each with a keychain in a temporary folder, and prints one table.
///
/// `compare` compares Valet with its peers, and `compare-sync` how they synchronize; without these, Valet is measured in more detail.
@main
enum Program {
    static let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]

    static func main() throws {
        // Writing to a process that has exited must be an error and not end this process.
        signal(SIGPIPE, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if try Subprogram.run(arguments) { return }
        if arguments.first == "compare" {
            guard let options = CompareOptions(Array(arguments.dropFirst())) else { refuse(CompareOptions.usage) }
            return try CompareRun.run(options)
        }
        if arguments.first == "compare-sync" {
            guard let options = SyncOptions(Array(arguments.dropFirst())) else { refuse(SyncOptions.usage) }
            return try SyncRun.run(options)
        }
        guard let options = Options(arguments) else { refuse(Options.usage) }
        try MeasuredRun.run(options)
    }

    /// The environment of a measuring process: its own keychain, and no settings of the user.
    static func environment(keychainHome: String) -> [String: String] {
        let environment = ProcessInfo.processInfo.environment
        return ["KEYCHAIN_HOME": keychainHome].merging(environment.filter { ["PATH", "LD_LIBRARY_PATH", "TMPDIR"].contains($0.key) }) {
            own, _ in own
        }
    }

    static func progress(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
    }

    private static func refuse(_ usage: String) -> Never {
        print(usage)
        exit(2)
    }
}
