// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

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
        let result = Self.whileNoneStarts {
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
    static func whileNoneStarts<Result>(_ body: () throws -> Result) rethrows -> Result {
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
