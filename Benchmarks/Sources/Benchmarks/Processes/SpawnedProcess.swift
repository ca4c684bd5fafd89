// SPDX-License-Identifier: Apache-2.0
import CBenchmarkShims
import Glibc

/// A started program.
///
/// The caller must wait for it.
struct SpawnedProcess {
    enum Ending: Equatable, CustomStringConvertible {
        case code(Int32)
        case signal(Int32)
        case tooLate

        var description: String {
            switch self {
            case .code(let code): "exit code \(code)"
            case .signal(let signal): "ended by signal \(signal)"
            case .tooLate: "took too long"
            }
        }
    }

    private let command: Command
    private let processID: pid_t

    /// Starts `command` with these descriptors.
    ///
    /// Its standard input is `standardInput` or, without one, the input of the command.
    init(_ command: Command, standardInput: Int32? = nil, output: Int32, error: Int32) throws {
        Interruption.holdIfUnderway()
        let (readEnd, writeEnd) = try Self.pipe()
        defer { close(readEnd) }
        let written = unsafe write(writeEnd, command.input, command.input.utf8.count)
        close(writeEnd)
        guard written == command.input.utf8.count else { throw Command.Failure(program: command.program, reason: "takes no input") }

        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (target, source) in [standardInput ?? readEnd, output, error].enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, source, Int32(target))
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        // The child must not inherit the ignored signals of this process.
        var heeded = sigset_t()
        unsafe sigemptyset(&heeded)
        for signal in Interruption.signals + [SIGPIPE] { unsafe sigaddset(&heeded, signal) }
        unsafe posix_spawnattr_setsigdefault(&attributes, &heeded)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))

        // Copies that are valid until the end of the call, with the terminating null pointer that posix_spawn requires.
        let arguments = unsafe ([command.program] + command.arguments).map { unsafe strdup($0) }
        let environment = unsafe command.environment.map { unsafe strdup("\($0.key)=\($0.value)") }
        defer { _ = unsafe (arguments + environment).map { unsafe free($0) } }
        var processID: pid_t = 0
        let code = unsafe posix_spawnp(&processID, command.program, &actions, &attributes, arguments + [nil], environment + [nil])
        guard code == 0 else { throw Command.Failure(program: command.program, reason: "cannot be started: error \(code)") }
        self.command = command
        self.processID = processID
    }

    /// Asks the process to end, as Ctrl-C does; the caller still has to wait for it.
    func interrupt() { _ = kill(processID, SIGINT) }

    /// Waits for the process to exit, and kills it at the deadline.
    func wait(timeoutSeconds: Double) throws -> Ending {
        var status: Int32 = 0
        let code = unsafe benchmark_wait(processID, Int32(timeoutSeconds * 1_000), &status)
        Interruption.holdIfUnderway()
        if code == ETIMEDOUT { return .tooLate }
        guard code == 0 else { throw Command.Failure(program: command.program, reason: "was lost: error \(code)") }
        // The layout of the status is that of wait(2): a signal in the low seven bits, an exit code in the next byte.
        return status & 0x7f == 0 ? .code(status >> 8 & 0xff) : .signal(status & 0x7f)
    }

    /// A pipe whose ends are not inherited by other child processes.
    static func pipe() throws -> (readEnd: Int32, writeEnd: Int32) {
        var descriptors: [Int32] = [-1, -1]
        guard unsafe Glibc.pipe(&descriptors) == 0 else { throw Command.Failure(program: "pipe", reason: "error \(errno)") }
        for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return (descriptors[0], descriptors[1])
    }
}
