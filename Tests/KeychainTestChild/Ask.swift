// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine

extension ChildCommand {
    /// PATH|configured passcode|new TIMEOUT-SECONDS FILE [own-session] [ignore-children]: asks, and prints the outcome.
    ///
    /// PATH is that of the only pinentry program. FILE contains the expected text; the entered text is not printed.
    static func ask(_ arguments: [String]) throws {
        guard arguments.count >= 4, let timeoutSeconds = UInt32(arguments[2]) else { throw BadArguments() }
        if arguments.contains("own-session"), setsid() < 0 { throw BadArguments() }
        if arguments.contains("ignore-children") { signal(SIGCHLD, SIG_IGN) }
        let prompter: any PresencePrompter =
            arguments[0] == "configured"
            ? try KeychainConfiguration.fromEnvironment().prompter
            : SystemPresencePrompter(
                .automatic, environment: PromptEnvironment(ProcessInfo.processInfo.environment), standardPaths: [arguments[0]])
        let expected = try Data(contentsOf: URL(filePath: arguments[3]))
        let question = PresenceQuestion(
            secret: arguments[1] == "new" ? .newApplicationPassword : .passcode, requester: "/usr/bin/mytool",
            purpose: "read an item that needs your passcode", reason: "Open the safe", timeoutSeconds: timeoutSeconds)
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        say("can ask \(prompter.canAsk)")
        say(outcome(of: question, prompter, expected))
        // The pipe for signals stays open in the process.
        let isLeaking = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count > descriptors + 2
        say(isLeaking ? "descriptors left" : "no descriptors left")
        say(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD ? "no children left" : "children left")
    }

    private static func outcome(of question: PresenceQuestion, _ prompter: any PresencePrompter, _ expected: Data) -> String {
        do throws(PresenceRefusal) {
            switch try prompter.ask(question) {
            case .empty: return "empty"
            case .secret(let secret):
                // The bytes are compared within the closure.
                let isExpected = unsafe secret.withBytes { unsafe Data($0) == expected }
                return isExpected ? "as expected" : "something else of \(secret.byteCount) bytes"
            }
        } catch {
            return "\(error)"
        }
    }

    /// TERMINAL foreground|background ARGUMENT ...: runs `ask` as a job of a shell on a terminal of its own, and prints how it ends.
    ///
    /// A job that stops is continued after the mode of the terminal was set, as a shell does.
    static func askOnTerminal(_ arguments: [String]) throws {
        guard arguments.count > 2, setsid() >= 0 else { throw BadArguments() }
        // The first terminal that the leader of a session opens controls it.
        let terminal = unsafe open(arguments[0], O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { throw BadArguments() }
        signal(SIGTTOU, SIG_IGN)
        let before = mode(of: terminal)
        var shellMode = termios()
        // Here and below: `shellMode` is ours.
        guard unsafe tcgetattr(terminal, &shellMode) == 0 else { throw BadArguments() }
        let job = try spawnJob(["ask"] + arguments.dropFirst(2), on: terminal, inForeground: arguments[1] == "foreground")
        while true {
            var status: Int32 = 0
            guard unsafe waitpid(job, &status, WUNTRACED) == job else { throw BadArguments() }
            // The layout of a status of wait(2).
            if status & 0xFF == 0x7F {
                say("stopped, terminal \(mode(of: terminal) == before ? "as before" : "changed")")
                _ = unsafe tcsetattr(terminal, TCSANOW, &shellMode)
                kill(-job, SIGCONT)
                continue
            }
            say(status & 0x7F == 0 ? "exited \(status >> 8 & 0xFF)" : "killed by \(status & 0x7F)")
            say("terminal \(mode(of: terminal) == before ? "as before" : "changed")")
            return
        }
    }

    /// Starts a job in a process group of its own, which is in the foreground before it asks.
    private static func spawnJob(_ arguments: [String], on terminal: Int32, inForeground: Bool) throws -> pid_t {
        var attributes = posix_spawnattr_t()
        var signals = sigset_t()
        // All pointers here are ours and used during the calls only.
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        // Clears the signal mask, which is inherited from the starting thread.
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        let words = unsafe (["KeychainTestChild", "as-job"] + arguments).map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe words.indices { unsafe free(words[index]) } }
        var gate: [Int32] = [-1, -1]
        guard unsafe pipe(&gate) == 0 else { throw BadArguments() }
        // The job reads its gate as descriptor 9.
        guard dup2(gate[0], 9) == 9 else { throw BadArguments() }
        _ = fcntl(gate[1], F_SETFD, FD_CLOEXEC)
        var job: pid_t = 0
        guard unsafe posix_spawn(&job, "/proc/self/exe", nil, &attributes, words, environ) == 0 else { throw BadArguments() }
        if inForeground { tcsetpgrp(terminal, job) }
        close(9)
        close(gate[0])
        close(gate[1])
        return job
    }

    /// Waits until the parent has put the job into the foreground or background, then runs `ask`.
    static func asJob(_ arguments: [String]) throws {
        var byte: UInt8 = 0
        // Returns at the end of the pipe; no byte is ever sent.
        _ = unsafe read(9, &byte, 1)
        close(9)
        try ask(Array(arguments.dropFirst()))
    }

    private static func mode(of terminal: Int32) -> [UInt8] {
        var mode = termios()
        // Here and below: `mode` is ours.
        guard unsafe tcgetattr(terminal, &mode) == 0 else { return [] }
        return unsafe withUnsafeBytes(of: &mode) { unsafe Array($0) }
    }
}

/// A scripted pinentry program: this program under another name, with a script in the same directory.
///
/// Each line is a step: `say TEXT` with a line break, `put TEXT` without, `until REQUEST` (everything before it is granted), `refuse
/// REQUEST` (from now on, with an error), `flood TEXT` for ever, `sleep MILLISECONDS`, `die`, `ignore-signals`, `close-output`. At the
/// end it waits for the end of its input. It logs its requests to another file.
enum ScriptedPinentry {
    static let prefix = "pinentry-"

    static func run(path: String) throws {
        let log = path + ".log"
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        let writer = try FileHandle(forWritingTo: URL(filePath: log))
        let variables = ProcessInfo.processInfo.environment.keys.sorted().joined(separator: " ")
        writer.write(Data("environment \(variables)\n".utf8))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        writer.write(Data("descriptors \(descriptors)\n".utf8))
        writer.write(Data("session \(getsid(0) == getpid() ? "own" : "shared")\n".utf8))
        var refused: [String] = []
        for step in try String(contentsOfFile: path + ".script", encoding: .utf8).split(separator: "\n") {
            let words = step.split(separator: " ", maxSplits: 1)
            let rest = words.count > 1 ? String(words[1]) : ""
            switch words[0] {
            case "say": say(rest)
            case "put": put(rest)
            case "until":
                while let request = readLine() {
                    writer.write(Data("\(request)\n".utf8))
                    if request.hasPrefix(rest) { break }
                    say(refused.contains { request.hasPrefix($0) } ? "ERR 83886254 Unknown option <Pinentry>" : "OK")
                }
            case "refuse": refused.append(rest)
            case "flood": while true { put(rest) }
            case "flood-lines": while true { say(rest) }
            case "sleep": usleep((UInt32(rest) ?? 0) * 1_000)
            case "die": kill(getpid(), SIGKILL)
            case "ignore-signals": signal(SIGTERM, SIG_IGN)
            case "close-output": close(1)
            default: throw BadArguments()
            }
        }
        while let request = readLine() { writer.write(Data("\(request)\n".utf8)) }
    }

    private static func put(_ text: String) {
        let bytes = Array(text.utf8)
        // As many bytes as the text has. An error means that the reader has ended.
        if unsafe write(1, bytes, bytes.count) < 0 { exit(1) }
    }
}
