// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc
internal import KeychainCore

/// A pinentry program that runs, and nothing of it when this is gone.
@safe final class PipedProcess: AssuanServer {
    private var child = keychain_child(process: -1, end: -1, input: -1, output: -1, leads_session: false)
    private var hasEnded = true
    /// Readable when the person at the terminal, or somebody else, ends the whole job; -1: nobody tells.
    private let interruption: Int32

    /// How long a program may take to end by itself, after SIGTERM and after SIGKILL.
    private static let terminationTimeoutsMilliseconds: [UInt64] = [300, 500, 2_000]

    init(path: String, environment: [String: String], leadsSession: Bool, interruption: Int32 = -1) throws(PresenceRefusal) {
        self.interruption = interruption
        // Copies that live until the end of the call, ended by the null pointer that posix_spawn asks for.
        let arguments = unsafe [strdup(path), nil]
        let variables = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for index in unsafe arguments.indices { unsafe free(arguments[index]) }
            for index in unsafe variables.indices { unsafe free(variables[index]) }
        }
        let code = unsafe keychain_child_start(path, arguments, variables, leadsSession, &child)
        guard code == 0 else { throw .failed("\(path) cannot be started: error \(code)") }
        hasEnded = false
    }

    deinit {
        end()
        // Here and below: the structure is ours.
        unsafe keychain_child_close(&child)
    }

    var output: Int32 { child.output }

    func send(_ line: [UInt8]) throws(PresenceRefusal) {
        // As many bytes as the line has.
        guard unsafe keychain_pipe_write(child.input, line, line.count) == line.count else {
            throw .failed("the pinentry program takes no more requests")
        }
    }

    func wait(until deadline: PromptDeadline) throws(PresenceRefusal) -> Bool {
        var requests = [
            pollfd(fd: child.output, events: Int16(POLLIN), revents: 0), pollfd(fd: child.end, events: Int16(POLLIN), revents: 0),
            pollfd(fd: interruption, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            // As many requests as there are; a negative descriptor is passed over.
            let count = unsafe poll(&requests, nfds_t(requests.count), deadline.remainingMilliseconds)
            if requests[2].revents != 0 { throw .canceled }
            if count > 0 { return true }
            if deadline.isOver { return false }
        }
    }

    var isOver: Bool { waitForEnd(milliseconds: 0) }

    /// Whether the program had to be killed: then it left its terminal as it was.
    private(set) var wasKilled = false

    /// Ends the program, kindly first; afterwards there is no trace of it, not even a zombie.
    func end() {
        unsafe keychain_child_close_input(&child)
        for (grace, signal) in zip(Self.terminationTimeoutsMilliseconds, [SIGTERM, SIGKILL, 0]) {
            guard !waitForEnd(milliseconds: grace) else { return }
            guard signal != 0 else { return }
            wasKilled = true
            unsafe keychain_child_signal(&child, signal)
        }
    }

    /// The same, for one that is known not to answer.
    func kill() {
        guard !hasEnded, !waitForEnd(milliseconds: 0) else { return }
        wasKilled = true
        unsafe keychain_child_signal(&child, SIGTERM)
        end()
    }

    private func waitForEnd(milliseconds: UInt64) -> Bool {
        let deadline = PromptDeadline(nanoseconds: .max).within(milliseconds: milliseconds)
        while !hasEnded {
            hasEnded = unsafe keychain_child_has_ended(&child)
            guard !hasEnded, !deadline.isOver else { break }
            var request = pollfd(fd: child.end, events: Int16(POLLIN), revents: 0)
            // One request; without a descriptor that tells the end it is looked for every few milliseconds.
            _ = unsafe poll(&request, 1, child.end >= 0 ? deadline.remainingMilliseconds : min(5, deadline.remainingMilliseconds))
        }
        return hasEnded
    }
}
