// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainEngine
import KeychainSystem
import Valet

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a command with secrets.",
        usage: "valet run [--fd <name=key>] ... [--env <name=key>] ... [<options>] -- <command> ...",
        discussion: """
            The command replaces valet, so its exit code and signals are its own. Exits with 127 if the command is not found and 126 if it \
            cannot be executed.

            Prefer --fd: the secret is in a sealed memory file, and NAME holds the number of its descriptor. A shell reads it with: \
            cat <&"$NAME". --env puts the secret into the environment, which every process of the same user can read and every child \
            inherits. All other descriptors from 3 up are closed.
            """
    )

    @Option(help: ArgumentHelp("Pass the secret of KEY as a file descriptor, whose number is in NAME.", valueName: "name=key"))
    var fd: [SecretAssignment] = []

    @Option(help: ArgumentHelp("Put the secret of KEY into the environment as NAME.", valueName: "name=key"))
    var env: [SecretAssignment] = []

    @OptionGroup
    var reason: ReasonOption

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    @Argument(parsing: .postTerminator, help: "The command and its arguments.")
    var command: [String] = []

    func validate() throws {
        if command.isEmpty { throw ValidationError("Give the command to run after --.") }
        var names: Set<String> = []
        for assignment in fd + env where !names.insert(assignment.name).inserted {
            throw ValidationError("\(assignment.name) is given twice.")
        }
    }

    func run() throws {
        guard !ProcessEnvironment.isPrivileged else {
            throw CommandFailure(
                .unavailable, "valet has privileges that its caller lacks, which the command would get",
                advice: "The command was not run. Do not install valet as a setuid or setgid program.")
        }
        let selected = try selection.resolve()
        let reason = try reason.text(for: selected)
        let passcode = try self.passcode.read()
        // Created before the keychain is opened, so that they get the lowest numbers.
        let files = try fd.map { _ in try sealedMemory { () throws(Errno) in try SealedMemoryFile() } }
        let session = try CommandSession(selected.entitlements, passcode: passcode)
        for (assignment, file) in zip(fd, files) {
            let secret = try secret(of: assignment, selected, session, reason)
            try sealedMemory { () throws(Errno) in try file.fill(with: secret) }
            try setEnvironment(assignment.name, Data("\(file.descriptor.rawValue)".utf8))
        }
        for assignment in env {
            try setEnvironment(assignment.name, try text(of: assignment, selected, session, reason))
        }
        guard Execution.closeDescriptorsOnExec(from: 3) else {
            throw CommandFailure(
                .unavailable, "open file descriptors cannot be closed for the command",
                advice: "The command was not run. On kernels before 5.11, /proc must be mounted.")
        }
        for file in files { try sealedMemory { () throws(Errno) in try file.keepAcrossExec() } }
        WarningLog.report()
        try execute()
    }

    private func secret(
        of assignment: SecretAssignment, _ selected: SelectedValet, _ session: CommandSession, _ reason: String
    ) throws(CommandFailure) -> Data {
        do {
            return try session.perform { try selected.valet.object(forKey: assignment.key, withPrompt: reason) }
        } catch {
            throw CommandFailure(error.status, "\(error.problem) (for \(assignment.name)); the command was not run", advice: error.advice)
        }
    }

    /// Returns a secret for the environment, where a NUL byte would end it.
    private func text(
        of assignment: SecretAssignment, _ selected: SelectedValet, _ session: CommandSession, _ reason: String
    ) throws(CommandFailure) -> Data {
        let secret = try secret(of: assignment, selected, session, reason)
        guard !secret.contains(0) else {
            throw CommandFailure(
                .usage,
                "the secret for \(assignment.name) contains a NUL byte, which an environment variable cannot hold; the command was not run",
                advice: "Use --fd.")
        }
        return secret
    }

    private func sealedMemory<Result>(_ body: () throws(Errno) -> Result) throws(CommandFailure) -> Result {
        do throws(Errno) {
            return try body()
        } catch {
            throw CommandFailure(
                .unavailable, "cannot create sealed memory for the secret: \(error)",
                advice:
                    "The command was not run. --env works without sealed memory, but every process of this user can read the environment."
            )
        }
    }

    private func setEnvironment(_ name: String, _ value: Data) throws(CommandFailure) {
        guard ProcessEnvironment.set(name, to: value) else {
            throw CommandFailure(.unavailable, "the environment could not be changed; the command was not run", advice: "Use --fd.")
        }
    }

    /// Replaces this process with the command.
    ///
    /// Returns only by throwing an error.
    private func execute() throws(CommandFailure) {
        ProcessHardening.restoreForExecution()
        TPMLibraryLog.restore()
        let error = ArgumentText.executeCommandAfterTerminator()
        let isMissing = error == .notFound
        throw CommandFailure(
            isMissing ? .commandNotFound : .notExecutable,
            isMissing ? "the command was not found" : "the command cannot be executed: \(error)",
            advice: isMissing
                ? "Check its name and PATH." : "Check that the file is executable and that its arguments are not too large."
        )
    }
}

/// `NAME=KEY`: the environment variable and the key of its secret.
struct SecretAssignment: ExpressibleByArgument {
    let name: String
    let key: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, Self.isName(parts[0]), !parts[1].isEmpty else { return nil }
        name = parts[0]
        key = parts[1]
    }

    /// Whether every shell accepts the text as the name of a variable.
    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
