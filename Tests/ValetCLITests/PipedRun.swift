// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a step with its standard output and standard error in pipes.
enum PipedRun {
    static func run(_ step: Transcript.Step, in folder: TemporaryFolder) throws -> RunResult {
        let output = try Pipe()
        let errors = try Pipe()
        let child = try ChildProcess(
            step.command, in: folder,
            redirections: [.open("/dev/null", O_RDONLY), .duplicate(output.writeEnd), .duplicate(errors.writeEnd)]
        )
        close(output.writeEnd)
        close(errors.writeEnd)
        defer {
            close(output.readEnd)
            close(errors.readEnd)
        }
        let texts = DescriptorReader.readToEnd(of: [output.readEnd, errors.readEnd])
        if texts == nil { child.kill() }
        let exitCode = child.wait()
        guard let texts else { throw ChildProcess.Failure(description: "\(step.command) did not end in time") }
        return RunResult(outputs: [folder.anonymised(texts[0])], standardError: folder.anonymised(texts[1]), exitCode: exitCode)
    }

    private struct Pipe {
        let readEnd: Int32
        let writeEnd: Int32

        /// Close-on-exec, so that commands started meanwhile by other tests do not keep it open.
        init() throws {
            var ends: [Int32] = [0, 0]
            try ChildProcess.whileNoneStarts {
                // The pointer is used during the call only.
                guard unsafe pipe(&ends) == 0, ends.allSatisfy({ fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }) else {
                    throw ChildProcess.Failure(description: "pipe: error \(errno)")
                }
            }
            (readEnd, writeEnd) = (ends[0], ends[1])
        }
    }
}
