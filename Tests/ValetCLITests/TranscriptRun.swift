// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// What a command did: what came out before and after each thing typed, and how it exited.
struct RunResult {
    var outputs: [String]
    var standardError = ""
    var exitCode: Int32

    /// Nil if it is what the step expects, else both, to be read side by side.
    func difference(from step: Transcript.Step) -> String? {
        let expectedOutputs = step.exchanges.map(\.output)
        let isSame =
            exitCode == step.exitCode && outputs.count == expectedOutputs.count
            && zip(outputs, expectedOutputs).allSatisfy { Self.matches($0, $1) }
            && Self.matches(standardError, step.standardError)
        guard !isSame else { return nil }
        func show(_ outputs: [String], _ standardError: String, _ code: Int32) -> String {
            outputs.joined(separator: "<typed>") + (standardError.isEmpty ? "" : "! " + standardError) + "? \(code)"
        }
        return """
            expected:
            \(show(expectedOutputs, step.standardError, step.exitCode))
            came:
            \(show(outputs, standardError, exitCode))
            """
    }

    /// Compares line by line; blanks at the end of a line do not count, and … in what is expected matches any text.
    static func matches(_ text: String, _ expected: String) -> Bool {
        let lines = split(text)
        let expectedLines = split(expected)
        return lines.count == expectedLines.count && zip(lines, expectedLines).allSatisfy { line($0, matches: $1) }
    }

    private static func split(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            var line = line
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    private static func line(_ line: Substring, matches expected: Substring) -> Bool {
        let parts = expected.split(separator: "…", omittingEmptySubsequences: false)
        guard parts.count > 1 else { return line == expected }
        guard var rest = line.hasPrefix(parts[0]) ? line.dropFirst(parts[0].count) : nil else { return false }
        for part in parts.dropFirst().dropLast() {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }
}

/// An empty folder that is gone afterwards.
struct TemporaryFolder {
    let path: String

    static func with<Result>(_ body: (TemporaryFolder) throws -> Result) throws -> Result {
        let url = FileManager.default.temporaryDirectory.appending(path: "valet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: url) }
        return try body(TemporaryFolder(path: url.path))
    }

    /// The environment of a command in this folder, and nothing of ours.
    var environment: [String] {
        [
            "HOME=\(path)", "KEYCHAIN_HOME=\(path)/keychain", "PATH=\(Self.folderOfProducts):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL=C.UTF-8", "TERM=xterm", "TZ=UTC", "COLUMNS=100",
        ]
    }

    /// Shows the folder in what came out as $HOME.
    func replacingHomePath(_ text: String) -> String {
        text.replacingOccurrences(of: path, with: "$HOME")
    }

    /// Where the build put `valet`: beside the test bundle.
    private static let folderOfProducts: String = {
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(filePath: executable).deletingLastPathComponent().path
    }()
}

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
        return RunResult(
            outputs: [folder.replacingHomePath(texts[0])], standardError: folder.replacingHomePath(texts[1]), exitCode: exitCode)
    }

    private struct Pipe {
        let readEnd: Int32
        let writeEnd: Int32

        /// Close-on-exec, so that commands started meanwhile by other tests do not keep it open.
        init() throws {
            var ends: [Int32] = [0, 0]
            try ChildProcess.withoutConcurrentSpawn {
                // The pointer is used during the call only.
                guard unsafe pipe(&ends) == 0, ends.allSatisfy({ fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }) else {
                    throw ChildProcess.Failure(description: "pipe: error \(errno)")
                }
            }
            (readEnd, writeEnd) = (ends[0], ends[1])
        }
    }
}

/// Runs a step on a pseudo-terminal, and types when what is expected has come out.
struct TerminalRun {
    // Of <asm-generic/ioctls.h>, which the C library's module leaves out.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    private let step: Transcript.Step
    private let folder: TemporaryFolder
    /// Our side of the terminal.
    private let screen: Int32
    private let deadline = Date(timeIntervalSinceNow: ChildProcess.deadlineSeconds)

    static func run(_ step: Transcript.Step, in folder: TemporaryFolder) throws -> RunResult {
        // All pointers here are used during the calls only.
        let screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(screen) }
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else {
            throw ChildProcess.Failure(description: "no pseudo-terminal: error \(errno)")
        }
        var size = winsize(ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        // The first terminal that the leader of a session opens controls it.
        let child = try ChildProcess(
            step.command, in: folder, redirections: [.open("/dev/pts/\(number)", O_RDWR), .duplicate(0), .duplicate(0)]
        )
        let outputs = TerminalRun(step: step, folder: folder, screen: screen).converse()
        // Either it has ended, or it waits for something that will not come.
        if outputs.isUnfinished { child.kill() }
        return RunResult(outputs: outputs.texts, exitCode: child.wait())
    }

    private init(step: Transcript.Step, folder: TemporaryFolder, screen: Int32) {
        self.step = step
        self.folder = folder
        self.screen = screen
    }

    private func converse() -> (texts: [String], isUnfinished: Bool) {
        var texts: [String] = []
        for exchange in step.exchanges {
            var text = ""
            while !(exchange.typed != nil && RunResult.matches(text, exchange.output)) {
                var request = [pollfd(fd: screen, events: Int16(POLLIN), revents: 0)]
                guard DescriptorReader.wait(&request, until: deadline) else { return (texts + [text], true) }
                guard let chunk = DescriptorReader.read(screen) else { return (texts + [text], false) }
                text += shown(chunk)
            }
            texts.append(text)
            if let typed = exchange.typed, !type(typed) { return (texts, true) }
        }
        return (texts, false)
    }

    /// Types, and takes off what the terminal shows of it: the text if it may be shown, and the line break.
    ///
    /// False: something else came.
    private func type(_ typed: Transcript.Typed) -> Bool {
        let bytes = Array(typed.text.utf8)
        // The pointer is used during the call only.
        guard unsafe write(screen, bytes, bytes.count) == bytes.count else { return false }
        let shown = typed.isShown ? typed.text : typed.text.filter { $0 == "\n" }
        let echo = shown.replacingOccurrences(of: "\n", with: "\r\n").utf8
        for expected in echo {
            var request = [pollfd(fd: screen, events: Int16(POLLIN), revents: 0)]
            var byte: UInt8 = 0
            guard DescriptorReader.wait(&request, until: deadline), unsafe read(screen, &byte, 1) == 1, byte == expected else {
                return false
            }
        }
        return true
    }

    private func shown(_ chunk: Data) -> String {
        folder.replacingHomePath(String(decoding: chunk, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n"))
    }
}

/// Reads what comes out of descriptors, with a deadline.
enum DescriptorReader {
    /// Everything that comes out of all of them; nil if one is still open at the deadline.
    ///
    /// Bytes that are not UTF-8 show as �.
    static func readToEnd(of descriptors: [Int32]) -> [String]? {
        let deadline = Date(timeIntervalSinceNow: ChildProcess.deadlineSeconds)
        var data = descriptors.map { _ in Data() }
        var open = Set(descriptors.indices)
        while !open.isEmpty {
            let waiting = open.sorted()
            var requests = waiting.map { pollfd(fd: descriptors[$0], events: Int16(POLLIN), revents: 0) }
            guard wait(&requests, until: deadline) else { return nil }
            for (index, request) in zip(waiting, requests) where request.revents != 0 {
                if let chunk = read(descriptors[index]) { data[index] += chunk } else { open.remove(index) }
            }
        }
        return data.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The next bytes; nil at the end.
    ///
    /// A pseudo-terminal whose last user is gone answers an error, which is its end.
    static func read(_ descriptor: Int32) -> Data? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        // The pointer is used during the call only.
        let count = unsafe Foundation.read(descriptor, &chunk, chunk.count)
        return count > 0 ? Data(chunk[..<count]) : nil
    }

    /// False at the deadline.
    static func wait(_ requests: inout [pollfd], until deadline: Date) -> Bool {
        while true {
            let rest = deadline.timeIntervalSinceNow
            guard rest > 0 else { return false }
            // The pointer is used during the call only.
            let count = unsafe poll(&requests, nfds_t(requests.count), Int32(min(rest * 1000, 60_000)))
            if count > 0 { return true }
        }
    }
}

/// A command started with posix_spawn in a session of its own.
struct ChildProcess {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// `POSIX_SPAWN_SETSID`, which the C library shows to GNU programs only.
    private static let newSession: Int32 = 0x80

    let identifier: pid_t
    /// No command here takes longer than a moment; this is for machines under load.
    static let deadlineSeconds = 120.0

    /// Where a standard descriptor of the command goes.
    enum Redirection {
        case open(String, Int32)
        case duplicate(Int32)
    }

    /// Starts `/bin/sh -c command` in the folder, with its descriptors 0, 1 and 2 redirected in this order.
    init(_ command: String, in folder: TemporaryFolder, redirections: [Redirection]) throws {
        // All pointers here are used during the calls only.
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        defer {
            unsafe posix_spawn_file_actions_destroy(&actions)
            unsafe posix_spawnattr_destroy(&attributes)
        }
        for (descriptor, redirection) in zip(Int32(0)..., redirections) {
            switch redirection {
            case .open(let path, let flags): unsafe posix_spawn_file_actions_addopen(&actions, descriptor, path, flags, 0)
            case .duplicate(let other): unsafe posix_spawn_file_actions_adddup2(&actions, other, descriptor)
            }
        }
        unsafe posix_spawnattr_setflags(&attributes, Int16(Self.newSession | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        var process: pid_t = 0
        let result = Self.withoutConcurrentSpawn {
            unsafe withCStrings(["sh", "-c", "cd \"$HOME\" || exit\n" + command]) { arguments in
                unsafe withCStrings(folder.environment) { environment in
                    unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment)
                }
            }
        }
        guard result == 0 else { throw Failure(description: "posix_spawn: error \(result)") }
        identifier = process
    }

    /// A child inherits every descriptor that is not marked yet, so none may start between opening one and marking it.
    static func withoutConcurrentSpawn<Result>(_ body: () throws -> Result) rethrows -> Result {
        try starting.withLock { _ in try body() }
    }

    private static let starting = Mutex<Void>(())

    /// Ends the whole session if the command runs on.
    func kill() {
        Foundation.kill(-identifier, SIGKILL)
    }

    /// The exit code; 128 + n for signal n.
    func wait() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// Calls `body` with a null-terminated array of C strings, as posix_spawn takes it.
private func withCStrings<Result>(_ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result) -> Result {
    // Copies of the texts that live as long as the call.
    let pointers = unsafe texts.map { unsafe strdup($0) }
    defer {
        for index in unsafe pointers.indices { unsafe free(pointers[index]) }
    }
    return unsafe body(pointers + [nil])
}
