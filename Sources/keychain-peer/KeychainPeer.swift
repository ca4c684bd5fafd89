// SPDX-License-Identifier: Apache-2.0
internal import KeychainPeers
internal import KeychainSystem
internal import Synchronization

/// The program `keychain-peer`: tells keychaind which program a process executes.
///
/// It has the capability to look at the processes of all users, which keychaind must not have. It knows no secret, and limits itself to reading
/// files before it answers the first question.
@main
enum KeychainPeer {
    private static let standardSocketPath = "/run/keychain-peer/keychain-peer.sock"

    static func main() {
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        CurrentProcess.raiseDescriptorLimit()
        guard let path = socketPath() else {
            fail("usage: keychain-peer [--socket /PATH]", status: 64)
        }
        do throws(Errno) {
            let listener = try listening(path)
            try ProcessHardening.confineToInspection()
            let inspections = Inspections()
            while true {
                do throws(Errno) {
                    inspections.begin(try listener.acceptInspection())
                } catch {
                    // For example a lack of descriptors, which is over when other inspections have ended.
                    MonotonicClock.sleep(nanoseconds: 50_000_000)
                }
            }
        } catch {
            fail("keychain-peer cannot listen at \(path), or limit itself: \(error)", status: 1)
        }
    }

    private static func socketPath() -> String? {
        switch ProcessArguments.count {
        case 1: return standardSocketPath
        case 3 where ProcessArguments.text(at: 1) == "--socket":
            guard let path = ProcessArguments.text(at: 2), path.hasPrefix("/") else { return nil }
            return path
        default: return nil
        }
    }

    private static func listening(_ path: String) throws(Errno) -> PacketListener {
        if let listener = PacketListener(passedBySystemdIn: ProcessEnvironment.variables) { return listener }
        return try PacketListener(at: path)
    }

    private static func fail(_ reason: String, status: Int32) -> Never {
        try? FileDescriptor.standardError.writeAll("\(reason)\n".utf8)
        CurrentProcess.exit(with: status)
    }
}

/// The processes that are looked at, each by a thread of its own: a process may keep the one that looks at it waiting.
private final class Inspections: Sendable {
    /// The most processes of one user at a time: as many as the connections that keychaind has with them.
    private static let largestCount = 128
    /// By user.
    private let counts = Mutex<[UInt32: Int]>([:])

    /// Answers the questions on a connection.
    func begin(_ socket: InspectionSocket) {
        // Without a thread the socket is closed, and nothing is known.
        _ = BackgroundThread.start { [self] in
            do throws(Errno) {
                try inspect(try socket.receiveHandle(until: .after(seconds: 1)), socket)
            } catch {
                // keychaind has ended, or has no further question.
            }
        }
    }

    private func inspect(_ handle: ProcessHandle, _ socket: InspectionSocket) throws(Errno) {
        guard let process = handle.processID, let text = ProcessFile("/proc/\(process)/status").text,
            let user = ProcessFile.field("Uid:", in: text).flatMap({ UInt32($0) }),
            let execution = try? ProgramExecution(ofProcess: process)
        else { return try socket.send(ProgramFacts().encoded) }
        guard admit(user) else { return }
        defer { remove(user) }
        let facts = ProgramFacts(ofProcess: process)
        // After everything was read: it was about this program, and the number belonged to the process.
        let isValid = execution.goesOn && !handle.hasEnded
        try socket.send((isValid ? facts : ProgramFacts()).encoded)
        // More than a program may take for its greeting.
        guard try socket.receive(byteCount: 1, until: .after(seconds: 10)) == [ProgramFacts.confirmation] else { return }
        // The memory may be that of a child process too, which has not executed another program when its parent has.
        let isSame = ProgramFacts(ofProcess: process) == facts && execution.goesOn && !handle.hasEnded
        try socket.send([isSame ? 1 : 0])
    }

    private func admit(_ user: UInt32) -> Bool {
        counts.withLock { counts in
            guard counts[user, default: 0] < Self.largestCount else { return false }
            counts[user, default: 0] += 1
            return true
        }
    }

    private func remove(_ user: UInt32) {
        counts.withLock { counts in
            counts[user, default: 0] -= 1
            if counts[user] == 0 { counts[user] = nil }
        }
    }
}
