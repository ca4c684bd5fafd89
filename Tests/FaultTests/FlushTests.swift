// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Testing

/// Durable means: on the disk before anybody is told so.
@Suite("A write is flushed before it is acknowledged", .enabled(if: FlushTrace.obstacle == nil, "\(FlushTrace.obstacle ?? "")"))
struct FlushTests {
    private let setCount = 100

    @Test("Between each of 100 writes and its acknowledgement the log is flushed, while another process has the keychain open")
    func flushes() throws {
        let trace = try trace(synchronous: "full")
        #expect(trace.acknowledgementCount == setCount)
        #expect(trace.violations.isEmpty)
    }

    @Test("The same check finds that a keychain opened with synchronous=NORMAL does not flush")
    func findsMissingFlush() throws {
        let trace = try trace(synchronous: "normal")
        #expect(trace.acknowledgementCount == setCount)
        // A checkpoint flushes the log once in a while.
        #expect(trace.violations.count > setCount / 2)
    }

    private func trace(synchronous: String) throws -> FlushTrace {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let program = try BuiltProgram.path(of: "KeychainTestChild")
            let environment = ["KEYCHAIN_HOME": home, "PATH": "/usr/bin:/bin"]
            let holder = try ChildProcess(program, ["hold-open"], environment: environment)
            #expect(try holder.readLine() == "ready")

            let log = directory + "/strace.log"
            let arguments = FlushTrace.straceArguments(
                logPath: log, program: program, ["acknowledged-sets", String(setCount), synchronous])
            let run = try ChildProcess.run("strace", arguments, environment: environment)
            #expect(run.ending == .exited(0), "\(run.output)")

            holder.closeInput()
            #expect(try holder.waitUntilEnded() == .exited(0))
            return FlushTrace(log: try String(contentsOfFile: log, encoding: .utf8))
        }
    }
}
