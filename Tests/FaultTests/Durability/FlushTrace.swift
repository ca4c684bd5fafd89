// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import Testing

/// The strace log of a program that writes to a database with a write-ahead log and acknowledges on standard output.
struct FlushTrace {
    /// The system calls that matter here.
    enum Event: Equatable {
        case logWritten
        case logFlushed
        case acknowledged(String)
    }

    /// Why an acknowledgement came too early.
    enum Violation: Equatable {
        case nothingWritten(acknowledgement: String)
        case notFlushed(acknowledgement: String)
    }

    let events: [Event]

    var acknowledgementCount: Int {
        events.count { if case .acknowledged = $0 { true } else { false } }
    }

    /// Acknowledgements that precede the flush of their writes.
    var violations: [Violation] {
        var violations: [Violation] = []
        var hasWritten = false
        var isFlushed = false
        for event in events {
            switch event {
            case .logWritten: (hasWritten, isFlushed) = (true, false)
            case .logFlushed: isFlushed = true
            case .acknowledged(let text):
                if !hasWritten { violations.append(.nothingWritten(acknowledgement: text)) }
                if hasWritten, !isFlushed { violations.append(.notFlushed(acknowledgement: text)) }
                (hasWritten, isFlushed) = (false, false)
            }
        }
        return violations
    }

    /// Options for strace: all threads, descriptors with their paths, and an optional injection.
    ///
    /// With `--seccomp-bpf` the program stops only at the traced calls instead of at every call, which halves the time of a run. strace
    /// cannot send a signal from there.
    static func straceOptions(injecting injection: String? = nil) -> [String] {
        let stops = injection?.contains("signal=") == true ? [] : ["--seccomp-bpf"]
        return ["-f", "-y"] + stops + (injection.map { ["-e", "inject=\($0)"] } ?? [])
    }

    /// Arguments for strace, as `init(log:)` expects them.
    static func straceArguments(logPath: String, program: String, _ arguments: [String]) -> [String] {
        straceOptions() + ["-s", "64", "-e", "trace=write,writev,pwrite64,pwritev,fsync,fdatasync", "-o", logPath, program] + arguments
    }

    /// Why strace cannot be used here, or nil.
    static let obstacle: String? = {
        guard let run = try? ChildProcess.run("strace", ["-o", "/dev/null", "true"], environment: ["PATH": "/usr/bin:/bin"]) else {
            return "strace is not installed: make install-dependencies"
        }
        return run.ending == .exited(0) ? nil : "strace may not trace here"
    }()

    /// Reads a log of `strace -f -y`.
    ///
    /// Acknowledgements are lines that begin with "ack ".
    init(log: String) {
        var events: [Event] = []
        /// Calls that the log splits, by process ID.
        var unfinished: [Substring: String] = [:]
        for line in log.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let (process, text) = (parts[0], parts[1].drop { $0 == " " })
            if text.hasSuffix("<unfinished ...>") {
                unfinished[process] = String(text.dropLast("<unfinished ...>".count))
                // A write counts from its start, a flush only from its end.
                if let event = Self.event(of: text, isFinished: false) { events.append(event) }
            } else if text.hasPrefix("<... "), let start = unfinished.removeValue(forKey: process) {
                let whole = start + (text.split(separator: "resumed>", maxSplits: 1).last ?? "")
                if let event = Self.event(of: whole[...], isFinished: true), event == .logFlushed { events.append(event) }
            } else if let event = Self.event(of: text, isFinished: true) {
                events.append(event)
            }
        }
        self.events = events
    }

    private static func event(of call: Substring, isFinished: Bool) -> Event? {
        guard let open = call.firstIndex(of: "(") else { return nil }
        let name = call[..<open]
        let arguments = call[call.index(after: open)...]
        let isOnLog = arguments.prefix { $0 != "," && $0 != ")" }.contains("-wal>")
        switch name {
        case "fsync", "fdatasync": return isOnLog && isFinished && call.hasSuffix("= 0") ? .logFlushed : nil
        case "write", "writev", "pwrite64", "pwritev":
            if isOnLog { return .logWritten }
            guard name == "write", arguments.hasPrefix("1<"), let quote = arguments.firstIndex(of: "\"") else { return nil }
            let text = arguments[arguments.index(after: quote)...].prefix { $0 != "\\" && $0 != "\"" }
            return text.hasPrefix("ack ") ? .acknowledged(String(text)) : nil
        default: return nil
        }
    }
}

/// A trace of a program whose threads announce each write and acknowledge it afterwards.
///
/// Lines are "ask NAME" and "ack NAME".
struct SharedFlushTrace {
    private enum Stage {
        case asked, written, flushed
    }

    /// The names that were acknowledged.
    private(set) var acknowledged: [Substring] = []
    /// The names acknowledged too early: before the end of a flush that began after a write to the log that followed the request.
    private(set) var violations: [Substring] = []
    private(set) var flushCount = 0

    private var stages: [Substring: Stage] = [:]
    /// The names that each running flush makes durable, by thread.
    private var beingFlushed: [Substring: Set<Substring>] = [:]

    /// Reads a log of `FlushTrace.straceArguments`.
    init(log: String) {
        for line in log.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let (thread, call) = (parts[0], parts[1].drop { $0 == " " })
            if call.hasPrefix("<... ") {
                if call.contains("sync resumed>") { endFlush(of: thread, succeeded: call.hasSuffix("= 0")) }
                continue
            }
            let isOnLog = call.prefix { $0 != "," && $0 != ")" }.contains("-wal>")
            if call.hasPrefix("fsync(") || call.hasPrefix("fdatasync(") {
                guard isOnLog else { continue }
                beingFlushed[thread] = Set(stages.filter { $0.value == .written }.keys)
                if !call.hasSuffix("<unfinished ...>") { endFlush(of: thread, succeeded: call.hasSuffix("= 0")) }
            } else if isOnLog {
                for (name, stage) in stages where stage == .asked { stages[name] = .written }
            } else if call.hasPrefix("write(1<"), let text = call.split(separator: "\"").dropFirst().first {
                said(text.prefix { $0 != "\\" })
            }
        }
    }

    private mutating func endFlush(of thread: Substring, succeeded: Bool) {
        guard let names = beingFlushed.removeValue(forKey: thread), succeeded else { return }
        flushCount += 1
        for name in names where stages[name] != nil { stages[name] = .flushed }
    }

    private mutating func said(_ text: Substring) {
        let name = text.dropFirst(4)
        if text.hasPrefix("ask ") {
            stages[name] = .asked
        } else if text.hasPrefix("ack ") {
            acknowledged.append(name)
            if stages.removeValue(forKey: name) != .flushed { violations.append(name) }
        }
    }
}

@Suite("Parser of strace's log")
struct FlushTraceTests {
    @Test("A flush between write and acknowledgement is accepted")
    func accepts() {
        let trace = FlushTrace(
            log: """
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
                10 fdatasync(5</t/keychain.db-wal>)  = 0
                10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
                """)
        #expect(trace.events == [.logWritten, .logFlushed, .acknowledged("ack 0")])
        #expect(trace.violations.isEmpty)
    }

    @Test(
        "An early acknowledgement is a violation",
        arguments: [
            // Never flushed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // Flushed, and then written again.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal>)  = 0
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // The flush failed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal>)  = -1 EIO (Input/output error)
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // Another file was flushed.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(4</t/keychain.db>)  = 0
            10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            """,
            // The flush ended after the acknowledgement.
            """
            10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32) = 4120
            10 fdatasync(5</t/keychain.db-wal> <unfinished ...>
            11 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
            10 <... fdatasync resumed>) = 0
            """,
        ])
    func catchesMissingFlush(_ log: String) {
        #expect(FlushTrace(log: log).violations == [.notFlushed(acknowledgement: "ack 0")])
    }

    @Test("An acknowledgement without a write is a violation")
    func catchesMissingWrite() {
        let trace = FlushTrace(log: #"10 write(1<pipe:[7]>, "ack 3\n", 6) = 6"#)
        #expect(trace.violations == [.nothingWritten(acknowledgement: "ack 3")])
    }

    @Test("Calls that the log splits are joined")
    func joinsSplitCalls() {
        let trace = FlushTrace(
            log: """
                10 pwrite64(5</t/keychain.db-wal>, "abc"..., 4120, 32 <unfinished ...>
                11 write(2<pipe:[7]>, "ack of something else\\n", 6) = 6
                10 <... pwrite64 resumed>) = 4120
                10 fdatasync(5</t/keychain.db-wal> <unfinished ...>
                10 <... fdatasync resumed>) = 0
                10 write(1<pipe:[7]>, "ack 0\\n", 6) = 6
                """)
        #expect(trace.events == [.logWritten, .logFlushed, .acknowledged("ack 0")])
    }
}
