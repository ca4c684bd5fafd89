// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A program to start.
struct Command {
    struct Failure: Error {
        let program: String
        let reason: String
    }

    let program: String
    let arguments: [String]
    let environment: [String: String]
    /// What it reads.
    ///
    /// At most what a pipe holds, so that nobody need wait for it to be read.
    let input: String

    init(_ program: String, _ arguments: [String], environment: [String: String], input: String = "") {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.input = input
    }

    /// Runs it as cheaply as the system can, its words thrown away, and throws if it fails or takes too long.
    func run(timeoutSeconds: Double = 60) throws {
        let nowhere = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(nowhere) }
        try finish(SpawnedProcess(self, output: nowhere, error: nowhere), timeoutSeconds) { "" }
    }

    /// Runs it and returns what it writes.
    func output(timeoutSeconds: Double) throws -> Data {
        let (output, error) = (try ScratchFile(), try ScratchFile())
        try finish(SpawnedProcess(self, output: output.descriptor, error: error.descriptor), timeoutSeconds) {
            let lines = (try? error.contents()).map { String(decoding: $0, as: UTF8.self).split(separator: "\n") } ?? []
            // Compilers say most in the line with their first error, everyone else in the last.
            return (lines.first { $0.contains("error:") } ?? lines.last).map { ": " + $0 } ?? ""
        }
        return try output.contents()
    }

    private func finish(_ process: SpawnedProcess, _ timeoutSeconds: Double, complaint: () -> String) throws {
        let ending = try process.wait(timeoutSeconds: timeoutSeconds)
        guard ending == .code(0) else { throw Failure(program: program, reason: ending.description + complaint()) }
    }

    /// Where the program is, as a shell would find it.
    static func find(_ program: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
