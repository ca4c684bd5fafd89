// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Many threads share a flush, and none is answered before it", .timeLimit(.minutes(5)))
struct SharedFlushTests {
    private static let (threadCount, count) = (8, 25)

    private func trace(_ mode: String) throws -> SharedFlushTrace {
        try withTemporaryDirectory { directory in
            let log = directory + "/strace.log"
            let arguments = try FlushTrace.straceArguments(
                logPath: log, program: BuiltProgram.path(of: "KeychainTestChild"),
                ["acknowledged-sets-on-threads", String(Self.threadCount), String(Self.count), mode])
            let run = try ChildProcess.run(
                "strace", arguments, environment: ["KEYCHAIN_HOME": directory + "/home", "PATH": "/usr/bin:/bin"])
            #expect(run.ending == .exited(0), "\(run.output)")
            let trace = SharedFlushTrace(log: try String(contentsOfFile: log, encoding: .utf8))
            #expect(Set(trace.acknowledged).count == Self.threadCount * Self.count)
            return trace
        }
    }

    @Test(
        "Each of 8 threads is answered after a flush that began after its write; there are fewer flushes than writes",
        .enabled(if: FlushTrace.obstacle == nil, "\(FlushTrace.obstacle ?? "")"))
    func shares() throws {
        let trace = try trace("full")
        #expect(trace.violations.isEmpty)
        #expect(trace.flushCount > 0)
        #expect(trace.flushCount < trace.acknowledged.count)
    }

    @Test(
        "The same check finds what is answered too early, and what is not flushed at all",
        .enabled(if: FlushTrace.obstacle == nil, "\(FlushTrace.obstacle ?? "")"), arguments: ["early", "normal"])
    func findsViolations(_ mode: String) throws {
        let trace = try trace(mode)
        #expect(trace.violations.count > trace.acknowledged.count / 2)
    }

    @Test("A flush that began before the write does not count for it")
    func earlierFlush() {
        let trace = SharedFlushTrace(
            log: """
                10 write(1<pipe:[7]>, "ask a\\n", 6) = 6
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
                10 fdatasync(5</t/keychain.db-wal> <unfinished ...>
                11 write(1<pipe:[7]>, "ask b\\n", 6) = 6
                11 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
                10 <... fdatasync resumed>) = 0
                10 write(1<pipe:[7]>, "ack a\\n", 6) = 6
                11 write(1<pipe:[7]>, "ack b\\n", 6) = 6
                """)
        #expect(trace.acknowledged == ["a", "b"])
        #expect(trace.violations == ["b"])
        #expect(trace.flushCount == 1)
    }

    @Test("A flush that failed counts for nobody")
    func failedFlush() {
        let trace = SharedFlushTrace(
            log: """
                10 write(1<pipe:[7]>, "ask a\\n", 6) = 6
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
                10 fdatasync(5</t/keychain.db-wal>) = -1 EIO (Input/output error)
                10 write(1<pipe:[7]>, "ack a\\n", 6) = 6
                """)
        #expect(trace.violations == ["a"])
        #expect(trace.flushCount == 0)
    }

    @Test("Beside processes whose 8 threads never stop writing, another process gets its turn")
    func otherProcesses() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("first", "secret")
            let writers = try (0..<2).map { _ in
                try ChildProcess(
                    BuiltProgram.path(of: "KeychainTestChild"), ["acknowledged-sets-on-threads", "8", "1000000", "full"],
                    environment: ["KEYCHAIN_HOME": home, "PATH": "/usr/bin:/bin"])
            }
            defer { for writer in writers { writer.send(signal: SIGKILL) } }
            for writer in writers { _ = try writer.readLine() }
            for number in 0..<20 {
                try keychain.addItem("item \(number)", "secret \(number)")
                #expect(try keychain.secret(of: "item \(number)") == "secret \(number)")
            }
        }
    }
}
