// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A TPM 2.0 emulator with a state of its own, which ends with the last reference to it.
///
/// It has no resource manager and three slots each for objects and sessions, so leaked objects are noticed.
package final class SoftwareTPM {
    package enum Failure: Error {
        case didNotStart(log: String)
        case toolFailed(String, ChildProcess.Ending, output: String)
    }

    private let directory: TemporaryDirectory
    private let recordsTraffic: Bool
    private var process: ChildProcess?

    private var socketPath: String { directory.path + "/S" }
    private var logPath: String { directory.path + "/log" }
    package var stateDirectory: String { directory.path + "/state" }

    /// The TCTI configuration of tpm2-tss.
    package var tcti: String { "swtpm:path=\(socketPath)" }

    package init(recordsTraffic: Bool = false) throws {
        directory = try TemporaryDirectory()
        self.recordsTraffic = recordsTraffic
        try FileManager.default.createDirectory(atPath: stateDirectory, withIntermediateDirectories: false)
        try start()
    }

    /// Starts it after `kill`, with its previous state.
    package func start() throws {
        // tpm2-tss expects the control socket beside the other, with this suffix.
        let paths = [socketPath, socketPath + ".ctrl"]
        for path in paths { try? FileManager.default.removeItem(atPath: path) }
        process = try ChildProcess(
            "swtpm",
            [
                "socket", "--tpm2", "--tpmstate", "dir=\(stateDirectory)", "--server", "type=unixio,path=\(paths[0])",
                "--ctrl", "type=unixio,path=\(paths[1])", "--flags", "startup-clear", "--log",
                "file=\(logPath),level=\(recordsTraffic ? 5 : 1)",
            ]
        )
        guard waitUntil(withinSeconds: 30, { paths.allSatisfy(Self.accepts) }) else {
            throw Failure.didNotStart(log: (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "")
        }
    }

    /// Kills it, like a power cut.
    package func kill() throws {
        process?.send(signal: SIGKILL)
        _ = try process?.waitUntilEnded()
    }

    /// Sends it a signal; after SIGSTOP its sockets are open, but it does not answer.
    package func send(signal: Int32) { process?.send(signal: signal) }

    /// Its process ID, for threads that kill it.
    package var processID: Int32? { process?.processID }

    /// Runs one of tpm2-tools on it, and returns the output.
    @discardableResult
    package func run(_ tool: String, _ arguments: String...) throws -> String {
        let result = try ChildProcess.run(tool, arguments + ["-T", tcti])
        guard result.ending == .exited(0) else { throw Failure.toolFailed(tool, result.ending, output: result.output) }
        return result.output
    }

    /// Clears it as firmware does on request: all sealed objects become unusable.
    package func clear() throws { try run("tpm2_clear", "-c", "p") }

    /// Sets the number of wrong authorizations before a lockout, and the seconds after which one is forgiven.
    package func setLockout(afterTries tryCount: Int, recoverySeconds: Int) throws {
        try run("tpm2_dictionarylockout", "-s", "-n", "\(tryCount)", "-t", "\(recoverySeconds)", "-l", "\(recoverySeconds)")
    }

    /// Returns the handles of loaded objects and sessions.
    package func loadedHandles() throws -> [String] {
        try ["handles-transient", "handles-loaded-session", "handles-saved-session"].flatMap { kind in
            try run("tpm2_getcap", kind).split(separator: "\n").map(String.init)
        }
    }

    /// Returns whether the bytes were transferred to or from the chip, which must record its traffic.
    package func hasSeen(_ bytes: some Sequence<UInt8>) throws -> Bool {
        let digits = bytes.map { byte in
            (String(byte >> 4, radix: 16) + String(byte & 0xf, radix: 16)).uppercased()
        }
        // Lines of 16, each byte followed by a blank.
        let log = try String(contentsOfFile: logPath, encoding: .utf8).replacing("\n ", with: "")
        return log.contains(digits.joined(separator: " "))
    }

    private static func accepts(_ path: String) -> Bool {
        let connection = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(connection) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The array ends in zeros; an address may be seen as the general kind.
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { place in
            guard path.utf8.count < place.count else { return false }
            unsafe place.copyBytes(from: path.utf8)
            return true
        }
        guard fits else { return false }
        return unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe connect(connection, address, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
