// SPDX-License-Identifier: Apache-2.0

/// What strace saw of a program whose threads say before each write that they ask for it, and acknowledge it afterwards.
///
/// Lines are "ask NAME" and "ack NAME".
struct SharedFlushTrace {
    private enum Stage {
        case asked, written, flushed
    }

    /// The names that were acknowledged.
    private(set) var acknowledged: [Substring] = []
    /// The names that were acknowledged before a flush had ended that began after the log was written after they were asked for.
    private(set) var violations: [Substring] = []
    private(set) var flushCount = 0

    private var stages: [Substring: Stage] = [:]
    /// What each running flush, by its thread, makes durable.
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
