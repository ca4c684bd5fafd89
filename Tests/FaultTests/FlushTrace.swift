// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport

/// What strace saw of a program that writes to a database with a write-ahead log and then acknowledges on standard output.
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

    /// Acknowledgements that were given before what they acknowledge was on the disk.
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

    /// Options that make strace write what `init(log:)` reads: all threads, descriptors with their paths.
    static func straceArguments(logPath: String, program: String, _ arguments: [String]) -> [String] {
        ["-f", "-y", "-s", "64", "-e", "trace=write,writev,pwrite64,pwritev,fsync,fdatasync", "-o", logPath, program] + arguments
    }

    /// Why strace cannot be used here; nil: it can.
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
        /// Calls that another thread's call interrupted in the log, by process id.
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
