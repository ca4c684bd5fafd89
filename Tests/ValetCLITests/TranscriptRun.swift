// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport

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

    /// Returns an error, which is a line with the problem and one with the advice, that says more than once that nothing was changed.
    static func errorSayingTwiceThatNothingWasChanged(in standardError: String) -> String? {
        let lines = standardError.split(separator: "\n")
        return zip(lines, lines.dropFirst()).map { "\($0)\n\($1)" }.first { error in
            error.hasPrefix("valet: ") && error.lowercased().ranges(of: "nothing was changed").count > 1
        }
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
    /// keychaind, in whose mount namespace the commands run; nil without it.
    private var service: ChildProcess?

    /// Runs `body` with a new environment.
    static func with<Result>(_ passcodeCost: PasscodeCost, _ body: (TranscriptEnvironment) throws -> Result) throws -> Result {
        try withTemporaryDirectory { try body(TranscriptEnvironment(path: $0, passcodeCost: passcodeCost)) }
    }

    /// Runs `body` with a new environment whose keychain is kept by keychaind.
    ///
    /// Only root can do that.
    static func withKeychaind<Result>(_ body: (TranscriptEnvironment) throws -> Result) throws -> Result {
        try withTemporaryDirectory { path in
            try withTemporaryDirectory { kept in
                var environment = TranscriptEnvironment(path: path, passcodeCost: .cheap)
                let script =
                    "mount -t tmpfs none /run && mkdir -m 755 /run/keychain && exec keychaind --directory \"$1\" --entitlements /nowhere"
                let service = try ChildProcess(
                    "/usr/bin/unshare", ["-m", "/bin/sh", "-c", script, "sh", kept], environment: environment.variables())
                environment.service = service
                let socket = "/proc/\(service.processID)/root/run/keychain/keychaind.sock"
                guard waitUntil({ FileManager.default.fileExists(atPath: socket) }) else {
                    throw TranscriptRun.Failure(description: "keychaind does not start")
                }
                let adoption = try PipedRun.run(
                    Transcript.Step(command: "valet daemon adopt", isOnTerminal: false, line: 0), in: environment)
                guard adoption.exitCode == 0 else { throw TranscriptRun.Failure(description: adoption.standardError) }
                return try body(environment)
            }
        }
    }

    /// The environment variables of a command.
    ///
    /// Nothing is inherited from the test.
    private func variables() throws -> [String: String] {
        var variables = [
            "HOME": path, "KEYCHAIN_HOME": "\(path)/keychain", "PATH": "\(Self.productsPath):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC", "COLUMNS": "100",
        ]
        if passcodeCost == .cheap { variables["LD_PRELOAD"] = try CheapPasscodePolicy.libraryPath.get() }
        return variables
    }

    /// Starts a command, which leads a session, in the directory.
    func start(_ command: String, standardStreams: [SpawnedProcess.Redirection]) throws -> SpawnedProcess {
        let namespace = service.map { ["/usr/bin/nsenter", "--mount=/proc/\($0.processID)/ns/mnt"] } ?? []
        let words = namespace + ["/bin/sh", "-c", "cd \"$HOME\" || exit\n" + command]
        return try SpawnedProcess(
            words[0], Array(words.dropFirst()), environment: variables(), standardStreams: standardStreams, inNewSession: true,
            inheritsOtherDescriptors: false)
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
        let compiler = try ChildProcess.run(
            "clang", ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", unfinished, source, "-ldl"],
            environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"])
        guard compiler.ending == .exited(0) else { throw CompilerFailure(output: compiler.output) }
        // Another test run may use the library meanwhile, so it is replaced atomically.
        guard unsafe rename(unfinished, library) == 0 else { throw CompilerFailure(output: "rename: error \(errno)") }
        return library
    }
}

/// The failure of a run, and its deadline.
enum TranscriptRun {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The deadline of a command that starts now.
    ///
    /// It is late because the machine may be under load.
    static var deadline: ContinuousClock.Instant { .now.advanced(by: .seconds(120)) }
}

/// Runs a step with separate standard output and standard error.
enum PipedRun {
    static func run(_ step: Transcript.Step, in environment: TranscriptEnvironment) throws -> RunResult {
        let output = try ChildConnection()
        let errors = try ChildConnection()
        defer {
            close(output.ownEnd)
            close(errors.ownEnd)
        }
        let child: SpawnedProcess
        do {
            defer {
                close(output.childEnd)
                close(errors.childEnd)
            }
            child = try environment.start(
                step.command,
                standardStreams: [.open("/dev/null", O_RDONLY), .duplicate(output.childEnd), .duplicate(errors.childEnd)])
        }
        let texts = readToEnd(of: [output.ownEnd, errors.ownEnd])
        if texts == nil { child.killSession() }
        let exitCode = try child.exitCode()
        guard let texts else { throw TranscriptRun.Failure(description: "\(step.command) did not end in time") }
        return RunResult(
            outputs: [environment.replacingHomePath(texts[0])], standardError: environment.replacingHomePath(texts[1]), exitCode: exitCode)
    }

    /// Reads all descriptors to the end.
    ///
    /// Returns nil if one is still open at the deadline.
    ///
    /// Bytes that are not UTF-8 become �.
    private static func readToEnd(of descriptors: [Int32]) -> [String]? {
        let deadline = TranscriptRun.deadline
        var bytes = descriptors.map { _ in [UInt8]() }
        var open = Set(descriptors)
        while !open.isEmpty {
            let readable = DescriptorReader.readable(open.sorted(), until: deadline)
            guard !readable.isEmpty else { return nil }
            for (index, descriptor) in descriptors.enumerated() where readable.contains(descriptor) {
                if let chunk = DescriptorReader.read(descriptor) { bytes[index] += chunk } else { open.remove(descriptor) }
            }
        }
        return bytes.map { String(decoding: $0, as: UTF8.self) }
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
    private let deadline = TranscriptRun.deadline

    static func run(_ step: Transcript.Step, in environment: TranscriptEnvironment) throws -> RunResult {
        // The pointers are used during the calls only.
        let screen = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(screen) }
        var number: UInt32 = 0
        var isLocked: Int32 = 0
        guard screen >= 0, unsafe ioctl(screen, Self.unlock, &isLocked) == 0, unsafe ioctl(screen, Self.getNumber, &number) == 0
        else {
            throw TranscriptRun.Failure(description: "no pseudo-terminal: error \(errno)")
        }
        var size = winsize(ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(screen, UInt(TIOCSWINSZ), &size)
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        let child = try environment.start(
            step.command, standardStreams: [.open("/dev/pts/\(number)", O_RDWR), .duplicate(0), .duplicate(0)])
        let outputs = TerminalRun(step: step, environment: environment, screen: screen).converse()
        // The command waits for input that the transcript does not have.
        if outputs.isUnfinished { child.killSession() }
        return RunResult(outputs: outputs.texts, exitCode: try child.exitCode())
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
                guard !DescriptorReader.readable([screen], until: deadline).isEmpty else { return (texts + [text], true) }
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
            var byte: UInt8 = 0
            guard !DescriptorReader.readable([screen], until: deadline).isEmpty, unsafe read(screen, &byte, 1) == 1, byte == expected
            else { return false }
        }
        return true
    }

    private func shown(_ chunk: [UInt8]) -> String {
        environment.replacingHomePath(String(decoding: chunk, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n"))
    }
}

extension SpawnedProcess {
    /// Kills the session that the process leads.
    fileprivate func killSession() {
        kill(-identifier, SIGKILL)
    }

    /// Waits for the process.
    ///
    /// Returns the exit code, or 128 + n for signal n, as a shell does.
    fileprivate func exitCode() throws -> Int32 {
        switch reap() {
        case .exited(let code): return code
        case .killed(let signal): return 128 + signal
        case nil: throw TranscriptRun.Failure(description: "waitpid: error \(errno)")
        }
    }
}
