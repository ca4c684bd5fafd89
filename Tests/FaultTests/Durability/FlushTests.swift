// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainEngine
import KeychainTestSupport
import Testing

/// A write is durable only if it is flushed before it is acknowledged.
@Suite(
    "Writes are flushed before they are acknowledged", .blocking, .requiresStrace)
struct FlushTests {
    private let setCount = Scale.pick(10, full: 100)

    @Test("The log is flushed between each write and its acknowledgement, while another process has the keychain open")
    func flushes() throws {
        let trace = try trace(synchronous: "full")
        #expect(trace.acknowledgementCount == setCount)
        #expect(trace.violations.isEmpty)
    }

    @Test("The check finds missing flushes with synchronous=NORMAL")
    func detectsMissingFlush() throws {
        let trace = try trace(synchronous: "normal")
        #expect(trace.acknowledgementCount == setCount)
        // Checkpoints flush the log now and then.
        #expect(trace.violations.count > setCount / 2)
    }

    @Test(
        "Creation flushes the files and every directory with a new entry, including directories that already exist",
        arguments: [[], ["above"], ["above", "above/home"], ["above", "above/home", "above/home/keys"]])
    func flushesDirectories(_ existing: [String]) throws {
        try withTemporaryDirectory { directory in
            for name in existing {
                try FileManager.default.createDirectory(
                    atPath: "\(directory)/\(name)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            }
            let log = directory + "/strace.log"
            let run = try ChildProcess.run(
                "strace",
                FlushTrace.straceOptions() + [
                    "-o", log, "-e", "trace=fsync,fdatasync", BuiltProgram.path(of: "KeychainTestChild"), "attempt", "add",
                ],
                environment: ["KEYCHAIN_HOME": directory + "/above/home", "PATH": "/usr/bin:/bin"])
            #expect(run.output == "0 add\n")
            let flushed = try String(contentsOfFile: log, encoding: .utf8).matches(of: /sync\(\d+<([^>]*)>\) += 0/).map { String($0.1) }
            // The deepest existing directory may have been created by another process just now, so its parent is flushed too.
            let above = ["", "/above", "/above/home"].dropFirst(max(0, existing.count - 1)).map { directory + $0 }
            for path in above + [directory + "/above/home", directory + "/above/home/keys"] {
                #expect(flushed.contains(path), "\(path) is not among \(flushed)")
            }
            #expect(flushed.contains { $0.hasSuffix(".key.new") })
            #expect(flushed.contains { $0.contains(".keychain.db.") && $0.hasSuffix(".new") })
        }
    }

    @Test("The first write of a process flushes the store's directory entry, which its creator may not have done")
    func flushesDirectoryEntry() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let child = try BuiltProgram.path(of: "KeychainTestChild")
            let environment = ["KEYCHAIN_HOME": home, "PATH": "/usr/bin:/bin"]
            #expect(try ChildProcess.run(child, ["acknowledged-sets", "1", "full"], environment: environment).ending == .exited(0))

            let log = directory + "/strace.log"
            let options = FlushTrace.straceOptions() + ["-o", log, "-e", "trace=write,fsync"]
            let run = try ChildProcess.run(
                "strace", options + [child, "acknowledged-sets", "1", "full"], environment: environment)
            #expect(run.ending == .exited(0), "\(run.output)")
            let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
            let flush = try #require(lines.firstIndex { $0.contains("fsync(") && $0.contains("<\(home)>") && $0.hasSuffix("= 0") })
            let acknowledgement = try #require(lines.firstIndex { $0.contains("\"ack ") })
            #expect(flush < acknowledgement)
        }
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

@Suite(
    "Group commits: threads share a flush, and none is acknowledged before it", .blocking, .timeLimit(.minutes(Scale.pick(10, full: 60))))
struct SharedFlushTests {
    private static let (threadCount, count) = (8, Scale.pick(5, full: 25))

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
        "Each of 8 threads is acknowledged after a flush that began after its write, with fewer flushes than writes",
        .requiresStrace)
    func shares() throws {
        let trace = try trace("full")
        #expect(trace.violations.isEmpty)
        #expect(trace.flushCount > 0)
        #expect(trace.flushCount < trace.acknowledged.count)
    }

    @Test(
        "The check finds early acknowledgements and missing flushes",
        .requiresStrace,
        arguments: Scale.pick(["normal"], full: ["early", "normal"]))
    func findsViolations(_ mode: String) throws {
        let trace = try trace(mode)
        #expect(trace.violations.count > trace.acknowledged.count / 2)
    }

    @Test("A flush that began before a write does not make it durable")
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

    @Test("A failed flush makes no write durable")
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

    @Test("A process can write while 8 threads of each of two other processes write continuously")
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
