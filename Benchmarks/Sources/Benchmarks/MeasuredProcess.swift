// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Starts a program and waits for its end.
enum MeasuredProcess {
    struct Failure: Error {
        let program: String
        let reason: String
    }

    /// Runs a program as cheaply as the system can, its output thrown away.
    ///
    /// Returns its exit code, or 128 and the signal.
    ///
    /// A nil `environment` is that of this process.
    static func run(_ program: String, _ arguments: [String], environment: [String: String]? = nil) throws -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        let variables = environment ?? ProcessInfo.processInfo.environment
        // Copies that live until the end of the call, ended by the null pointer that posix_spawn asks for.
        let argumentCopies = unsafe ([program] + arguments).map { unsafe strdup($0) }
        let environmentCopies = unsafe variables.map { unsafe strdup("\($0.key)=\($0.value)") }
        defer { _ = unsafe (argumentCopies + environmentCopies).map { unsafe free($0) } }
        var processID: pid_t = 0
        let code = unsafe posix_spawnp(&processID, program, &actions, nil, argumentCopies + [nil], environmentCopies + [nil])
        guard code == 0 else { throw Failure(program: program, reason: "cannot be started: error \(code)") }
        var status: Int32 = 0
        guard unsafe waitpid(processID, &status, 0) == processID else { throw Failure(program: program, reason: "was lost") }
        // The layout of the status is that of wait(2): a signal in the low seven bits, an exit code in the next byte.
        return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
    }

    /// Runs a program and returns what it writes.
    ///
    /// Throws when it fails, or has not ended after `timeoutSeconds`.
    static func output(
        of program: String, _ arguments: [String], input: String = "", environment: [String: String], timeoutSeconds: Double
    ) throws -> Data {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.environment = environment
        let (standardInput, standardOutput) = (Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = standardOutput
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let watchdog = DispatchWorkItem { process.terminate() }
        DispatchQueue.global().asyncAfter(deadline: .now() + timeoutSeconds, execute: watchdog)
        defer { watchdog.cancel() }
        let output = try standardOutput.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            let reason = process.terminationReason == .exit ? "exit code \(process.terminationStatus)" : "took too long"
            throw Failure(program: program, reason: reason)
        }
        return output
    }
}
