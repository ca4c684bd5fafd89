// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A program to run, with its arguments.
struct Command {
    struct Failure: Error {
        let program: String
        let reason: String
    }

    let program: String
    let arguments: [String]
    let environment: [String: String]
    /// The standard input.
    ///
    /// At most the capacity of a pipe, so that writing it never blocks.
    let input: String

    init(_ program: String, _ arguments: [String], environment: [String: String], input: String = "") {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.input = input
    }

    /// Runs the program with the least overhead and without its output.
    ///
    /// Throws if it fails or times out.
    func run(timeoutSeconds: Double = 60) throws {
        let nowhere = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(nowhere) }
        try finish(SpawnedProcess(self, output: nowhere, error: nowhere), timeoutSeconds) { "" }
    }

    /// Runs the program and returns its output.
    func output(timeoutSeconds: Double) throws -> Data {
        let (output, error) = (try ScratchFile(), try ScratchFile())
        try finish(SpawnedProcess(self, output: output.descriptor, error: error.descriptor), timeoutSeconds) {
            let lines = (try? error.contents()).map { String(decoding: $0, as: UTF8.self).split(separator: "\n") } ?? []
            // The most useful line is the first error of a compiler, and the last line of other programs.
            return (lines.first { $0.contains("error:") } ?? lines.last).map { ": " + $0 } ?? ""
        }
        return try output.contents()
    }

    private func finish(_ process: SpawnedProcess, _ timeoutSeconds: Double, complaint: () -> String) throws {
        let ending = try process.wait(timeoutSeconds: timeoutSeconds)
        guard ending == .code(0) else { throw Failure(program: program, reason: ending.description + complaint()) }
    }

    /// Returns the path of a program, found in PATH as by a shell.
    static func find(_ program: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
