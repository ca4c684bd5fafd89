// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Synchronization

/// The result of a command: the output before and after each input, and the exit code.
struct RunResult {
    var outputs: [String]
    var standardError = ""
    var exitCode: Int32

    /// Compares the result with the expectation of a step.
    ///
    /// Returns nil if they match, else both of them.
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
            actual:
            \(show(outputs, standardError, exitCode))
            """
    }

    /// Compares line by line.
    ///
    /// Ignores blanks at the end of a line; … in an expected line matches any text.
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

/// The environment of a transcript: a directory that is HOME and the working directory, and which passcodes are cheap.
struct TranscriptEnvironment {
    /// The cost of the key derivation for passcodes and backups.
    enum PasscodeCost {
        /// 64 MiB, as for users.
        case production
        /// 1 MiB. The transcripts derive keys about 180 times, which would take 80 seconds at the production cost.
        case cheap
    }

    let path: String
    private let passcodeCost: PasscodeCost

    /// Runs `body` with a new environment.
    static func with<Result>(_ passcodeCost: PasscodeCost, _ body: (TranscriptEnvironment) throws -> Result) throws -> Result {
        try withTemporaryDirectory { try body(TranscriptEnvironment(path: $0, passcodeCost: passcodeCost)) }
    }

    /// The environment variables of a command.
    ///
    /// Nothing is inherited from the test.
    func variables() throws -> [String] {
        let preloaded = passcodeCost == .cheap ? ["LD_PRELOAD=\(try CheapPasscodePolicy.libraryPath.get())"] : []
        return preloaded + [
            "HOME=\(path)", "KEYCHAIN_HOME=\(path)/keychain", "PATH=\(Self.productsPath):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL=C.UTF-8", "TERM=xterm", "TZ=UTC", "COLUMNS=100",
        ]
    }

    /// Replaces the path of the directory with $HOME.
    func replacingHomePath(_ text: String) -> String {
        text.replacingOccurrences(of: path, with: "$HOME")
    }

    /// The directory in which the build put `valet`, beside the test bundle.
    static let productsPath: String = {
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(filePath: executable).deletingLastPathComponent().path
    }()
}

/// The library that makes passcodes cheap; see Preload/cheap_passcode_policy.c.
enum CheapPasscodePolicy {
    struct CompilerFailure: Error {
        let output: String
    }

    /// The path of the library, which is compiled once per test run.
    static let libraryPath = Result { try compile() }

    private static func compile() throws -> String {
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Preload/cheap_passcode_policy.c").path
        let library = "\(TranscriptEnvironment.productsPath)/cheap_passcode_policy.so"
        let unfinished = "\(library).\(getpid())"
        let compiler = try KeychainTestSupport.ChildProcess.run(
            "clang", ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", unfinished, source, "-ldl"],
            environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"])
        guard compiler.ending == .exited(0) else { throw CompilerFailure(output: compiler.output) }
        // Another test run may use the library meanwhile, so it is replaced atomically.
        guard unsafe rename(unfinished, library) == 0 else { throw CompilerFailure(output: "rename: error \(errno)") }
        return library
    }
}

/// Runs a step with its standard output and standard error in pipes.
enum PipedRun {
    static func run(_ step: Transcript.Step, in environment: TranscriptEnvironment) throws -> RunResult {
        let output = try Pipe()
        let errors = try Pipe()
        let child = try TranscriptProcess(
            step.command, in: environment,
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
        guard let texts else { throw TranscriptProcess.Failure(description: "\(step.command) did not end in time") }
        return RunResult(
            outputs: [environment.replacingHomePath(texts[0])], standardError: environment.replacingHomePath(texts[1]), exitCode: exitCode)
    }

    private struct Pipe {
        let readEnd: Int32
        let writeEnd: Int32

        /// Creates a pipe whose ends are close-on-exec, so that commands that other tests start do not keep them open.
        init() throws {
            var ends: [Int32] = [0, 0]
            try TranscriptProcess.withoutConcurrentSpawn {
                // The pointer is used during the call only.
                guard unsafe pipe(&ends) == 0, ends.allSatisfy({ fcntl($0, F_SETFD, FD_CLOEXEC) == 0 }) else {
                    throw TranscriptProcess.Failure(description: "pipe: error \(errno)")
                }
            }
            (readEnd, writeEnd) = (ends[0], ends[1])
        }
    }
}

/// Runs a step on a pseudo-terminal, and types an input after the output before it has appeared.
struct TerminalRun {
    // From <asm-generic/ioctls.h>, which is missing in the module of the C library.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    private let step: Transcript.Step
    private let environment: TranscriptEnvironment
    /// The controlling side of the pseudo-terminal.
    private let screen: Int32
    private let deadline = Date(timeIntervalSinceNow: TranscriptProcess.deadlineSeconds)

    static func run(_ step: Transcript.Step, in environment: TranscriptEnvironment) throws -> RunResult {
        // The pointers are used during the calls only.
        let screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(screen) }
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else {
            throw TranscriptProcess.Failure(description: "no pseudo-terminal: error \(errno)")
        }
        var size = winsize(ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        let child = try TranscriptProcess(
            step.command, in: environment, redirections: [.open("/dev/pts/\(number)", O_RDWR), .duplicate(0), .duplicate(0)]
        )
        let outputs = TerminalRun(step: step, environment: environment, screen: screen).converse()
        // The command waits for input that the transcript does not have.
        if outputs.isUnfinished { child.kill() }
        return RunResult(outputs: outputs.texts, exitCode: child.wait())
    }

    private init(step: Transcript.Step, environment: TranscriptEnvironment, screen: Int32) {
        self.step = step
        self.environment = environment
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

    /// Types an input, and reads its echo: the text if the terminal shows it, and the line break.
    ///
    /// Returns false if the output differs from the echo.
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
        environment.replacingHomePath(String(decoding: chunk, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n"))
    }
}

/// Reads from descriptors, with a deadline.
enum DescriptorReader {
    /// Reads all of them to the end.
    ///
    /// Returns nil if one is still open at the deadline.
    ///
    /// Bytes that are not UTF-8 become �.
    static func readToEnd(of descriptors: [Int32]) -> [String]? {
        let deadline = Date(timeIntervalSinceNow: TranscriptProcess.deadlineSeconds)
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

    /// Returns the next bytes, or nil at the end.
    ///
    /// A pseudo-terminal that no process has open returns an error, which is its end.
    static func read(_ descriptor: Int32) -> Data? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        // The pointer is used during the call only.
        let count = unsafe Foundation.read(descriptor, &chunk, chunk.count)
        return count > 0 ? Data(chunk[..<count]) : nil
    }

    /// Waits until a descriptor is readable.
    ///
    /// Returns false at the deadline.
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

/// The process of a command, which leads a session.
struct TranscriptProcess {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// `POSIX_SPAWN_SETSID`, which the C library declares for GNU programs only.
    private static let newSession: Int32 = 0x80

    let identifier: pid_t
    /// The deadline of a command.
    ///
    /// It is long because the machine may be under load.
    static let deadlineSeconds = 120.0

    /// The file behind a standard descriptor of the command.
    enum Redirection {
        case open(String, Int32)
        case duplicate(Int32)
    }

    /// Starts `/bin/sh -c command` in the directory, with its descriptors 0, 1, and 2 redirected in this order.
    init(_ command: String, in environment: TranscriptEnvironment, redirections: [Redirection]) throws {
        // The pointers are used during the calls only.
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
        let variables = try environment.variables()
        var process: pid_t = 0
        let result = Self.withoutConcurrentSpawn {
            unsafe withCStrings(["sh", "-c", "cd \"$HOME\" || exit\n" + command]) { arguments in
                unsafe withCStrings(variables) { environment in
                    unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment)
                }
            }
        }
        guard result == 0 else { throw Failure(description: "posix_spawn: error \(result)") }
        identifier = process
    }

    /// Runs `body` while no process is started.
    ///
    /// A process that started between the opening of a descriptor and its marking as close-on-exec would inherit it.
    static func withoutConcurrentSpawn<Result>(_ body: () throws -> Result) rethrows -> Result {
        try starting.withLock { _ in try body() }
    }

    private static let starting = Mutex<Void>(())

    /// Kills the whole session.
    func kill() {
        Foundation.kill(-identifier, SIGKILL)
    }

    /// Waits for the process.
    ///
    /// Returns the exit code, or 128 + n for signal n.
    func wait() -> Int32 {
        var status: Int32 = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
}

/// Calls `body` with a null-terminated array of C strings.
private func withCStrings<Result>(_ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result) -> Result {
    // The copies are freed after the call.
    let pointers = unsafe texts.map { unsafe strdup($0) }
    defer {
        for index in unsafe pointers.indices { unsafe free(pointers[index]) }
    }
    return unsafe body(pointers + [nil])
}
