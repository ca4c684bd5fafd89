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
            let answers = Answers()
            while true {
                do throws(Errno) {
                    answers.answer(try listener.acceptInspection())
                } catch {
                    // For example a lack of descriptors, which is over when other questions were answered.
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

/// The questions that are being answered, each on a thread of its own: a process may keep the one that looks at it waiting.
private final class Answers: Sendable {
    /// The most questions about processes of one user at a time.
    private static let largestCount = 8
    /// By user.
    private let counts = Mutex<[UInt32: Int]>([:])

    func answer(_ socket: InspectionSocket) {
        // Without a thread the socket is closed, and nothing is known.
        _ = BackgroundThread.start { [self] in
            do throws(Errno) {
                let handle = try socket.receiveHandle(until: .after(seconds: 1))
                if let facts = facts(handle) { try socket.send(facts.encoded) }
            } catch {
                // keychaind has ended, or does not wait any more.
            }
        }
    }

    /// Returns nil if there are too many questions about the processes of its user.
    private func facts(_ handle: ProcessHandle) -> ProgramFacts? {
        guard let process = handle.processID, let text = ProcessFile("/proc/\(process)/status").text,
            let user = ProcessFile.field("Uid:", in: text).flatMap({ UInt32($0) })
        else { return ProgramFacts() }
        let isAdmitted = counts.withLock { counts in
            guard counts[user, default: 0] < Self.largestCount else { return false }
            counts[user, default: 0] += 1
            return true
        }
        guard isAdmitted else { return nil }
        defer {
            counts.withLock { counts in
                counts[user, default: 0] -= 1
                if counts[user] == 0 { counts[user] = nil }
            }
        }
        let facts = ProgramFacts(ofProcess: process)
        // After everything was read: its number belonged to it.
        return handle.hasEnded ? ProgramFacts() : facts
    }
}
