// SPDX-License-Identifier: Apache-2.0
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// A process with a keychain that does what it is asked: `unlock 12345`, `read account`, `lock`.
final class SessionProcess {
    struct Answer: Equatable {
        let status: Int32
        let text: String
    }

    private let child: ChildProcess

    var processID: pid_t { child.processID }

    /// `wrapper` is a command that runs the program as its last arguments say.
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

    /// Lines of the log come before the answer.
    func answer() throws -> Answer {
        while let line = try child.readLine() {
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.first == "=", words.count > 1, let status = Int32(words[1]) else { continue }
            return Answer(status: status, text: words.count > 2 ? String(words[2]) : "")
        }
        throw ChildProcess.Failure.gaveNoLine(output: child.linesRead.joined(separator: "\n"))
    }

    /// The status alone.
    func status(of request: String) throws -> KeychainStatus {
        KeychainStatus(rawValue: try ask(request).status)
    }

    /// Lets it come to its end, and what watches it too.
    func end() throws {
        child.closeInput()
        _ = try child.readToEnd()
        _ = try child.waitUntilEnded()
    }

    /// Kills it; whether it had answered before.
    func kill() throws -> Bool {
        child.send(signal: SIGKILL)
        let rest = try child.readToEnd()
        _ = try child.waitUntilEnded()
        return rest.split(separator: "\n").contains { $0.hasPrefix("= 0") }
    }
}

/// The kernel's own program for keyrings, beside the code that is tested.
enum KernelKeyringTool {
    /// Why no process here sees what another one unlocked; nil: it does.
    static let keyringUnavailabilityReason: String? =
        KeyHolderSelection.automatic.holderKindForNewStore == .processMemory ? "the kernel's keyring cannot be used here" : nil

    /// Why this cannot be used; nil: it can.
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
