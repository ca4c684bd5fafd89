// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A background program during a measurement.
///
/// It writes one line when it is ready, and exits at the end of its input.
final class CompanionProcess {
    private let command: Command
    private let process: SpawnedProcess
    private var inputEnd: Int32
    private let outputEnd: Int32

    init(_ command: Command) throws {
        let (standardInput, inputEnd) = try SpawnedProcess.pipe()
        let (outputEnd, standardOutput) = try SpawnedProcess.pipe()
        let nowhere = unsafe open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { for descriptor in [standardInput, standardOutput, nowhere] { close(descriptor) } }
        (self.command, self.inputEnd, self.outputEnd) = (command, inputEnd, outputEnd)
        process = try SpawnedProcess(command, standardInput: standardInput, output: standardOutput, error: nowhere)
        _ = unsafe write(inputEnd, command.input, command.input.utf8.count)
    }

    deinit { close(outputEnd) }

    /// Reads the line that the program writes when it is ready.
    func readLine(timeoutSeconds: Double = 60) throws -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            var waited = pollfd(fd: outputEnd, events: Int16(POLLIN), revents: 0)
            // One byte at a time, so that only this line is consumed.
            guard unsafe poll(&waited, 1, Int32(timeoutSeconds * 1_000)) == 1, unsafe read(outputEnd, &byte, 1) == 1 else {
                throw Command.Failure(program: command.program, reason: "did not become ready")
            }
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
    }

    /// Ends a program that does not exit at the end of its input, as Ctrl-C does.
    func interrupt() {
        guard inputEnd >= 0 else { return }
        process.interrupt()
        end()
    }

    /// Ends the program and waits for it, for a limited time.
    func end(timeoutSeconds: Double = 10) {
        guard inputEnd >= 0 else { return }
        close(inputEnd)
        inputEnd = -1
        _ = try? process.wait(timeoutSeconds: timeoutSeconds)
    }
}
