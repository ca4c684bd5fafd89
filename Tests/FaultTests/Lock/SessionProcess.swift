// SPDX-License-Identifier: Apache-2.0
import Contracts
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// A child process that carries out requests on a keychain: `unlock 12345`, `read account`, `lock`.
final class SessionProcess {
    struct Answer: Equatable {
        let status: Int32
        let text: String
    }

    private let child: ChildProcess

    var processID: pid_t { child.processID }

    /// Starts the child, with `wrapper` as a command, such as strace, to which program and arguments are appended.
    init(
        home: String, holder: KeyHolderSelection = .automatic, under wrapper: [String] = [], environment: [String: String] = [:]
    ) throws {
        let program = try BuiltProgram.path(of: "KeychainTestChild")
        let command = wrapper + [program, "session", holder.rawValue]
        child = try ChildProcess(
            command[0], Array(command.dropFirst()),
            environment: environment.merging(["KEYCHAIN_HOME": home, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"]) { $1 })
        while let line = try child.readLine() {
            if line == "ready" { return }
        }
        throw ChildProcess.Failure.gaveNoLine(output: child.linesRead.joined(separator: "\n"))
    }

    func ask(_ request: String) throws -> Answer {
        send(request)
        return try answer()
    }

    func send(_ request: String) {
        child.send(request)
    }

    /// Reads the next answer, skipping lines of the log.
    func answer() throws -> Answer {
        while let line = try child.readLine() {
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.first == "=", words.count > 1, let status = Int32(words[1]) else { continue }
            return Answer(status: status, text: words.count > 2 ? String(words[2]) : "")
        }
        throw ChildProcess.Failure.gaveNoLine(output: child.linesRead.joined(separator: "\n"))
    }

    /// Sends a request and returns the status of the answer.
    func status(of request: String) throws -> KeychainStatus {
        KeychainStatus(rawValue: try ask(request).status)
    }

    /// Ends its input, and waits until it and its wrapper have ended.
    func end() throws {
        child.closeInput()
        _ = try child.readToEnd()
        _ = try child.waitUntilEnded()
    }

    /// Kills it, and returns whether it had reported success before.
    func kill() throws -> Bool {
        child.send(signal: SIGKILL)
        let rest = try child.readToEnd()
        _ = try child.waitUntilEnded()
        return rest.split(separator: "\n").contains { $0.hasPrefix("= 0") }
    }
}

/// keyctl(1), which inspects keyrings independently of the code under test.
enum KernelKeyringTool {
    /// Why an unlock is not visible to other processes here, or nil.
    static let keyringUnavailabilityReason: String? =
        KeyHolderSelection.automatic.holderKindForNewStore == .processMemory ? "the kernel's keyring cannot be used here" : nil

    /// Why keyctl cannot be used, or nil.
    static let obstacle: String? = {
        if let keyringUnavailabilityReason { return keyringUnavailabilityReason }
        guard let run = try? run(["--version"]), run.isSuccess else { return "keyctl is not installed: make install-dependencies" }
        return nil
    }()

    static func run(_ arguments: [String]) throws -> (isSuccess: Bool, output: String) {
        let run = try ChildProcess.run("keyctl", arguments, environment: ["PATH": "/usr/bin:/bin"])
        return (run.ending == .exited(0), run.output)
    }
}
