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
        usage: "valet run [--fd <name=key>] ... [--env <name=key>] ... [--env-file <file>] ... [--all] [<options>] -- <command> ...",
        discussion: """
            The command replaces valet, so its exit code and signals are its own. Exits with 127 if the command is not found and 126 if it \
            cannot be executed.

            Prefer --fd: the secret is in a sealed memory file, and NAME holds the number of its descriptor. A shell reads it with: \
            cat <&"$NAME". --env puts the secret into the environment, which every process of the same user can read and every child \
            inherits. All other descriptors from 3 up are closed.

            --env-file reads NAME=VALUE lines, as of a .env file. NAME=valet:KEY is the secret of KEY, so the file contains no secrets and can \
            be committed. A value in single quotes is never a reference.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Pass the secret of KEY as a file descriptor, whose number is in NAME. NAME alone is short for NAME=NAME.",
            valueName: "name=key"))
    var fd: [SecretAssignment] = []

    @Option(
        help: ArgumentHelp(
            "Put the secret of KEY into the environment as NAME. NAME alone is short for NAME=NAME.", valueName: "name=key"))
    var env: [SecretAssignment] = []

    @Option(
        help: ArgumentHelp("Put the variables of this file into the environment; NAME=valet:KEY is the secret of KEY.", valueName: "file"),
        completion: .file())
    var envFile: [String] = []

    @Flag(help: "Put every secret of the valet into the environment, under its key, unless another option gives the variable.")
    var all = false

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
        let listed = all ? try selected.requireListable() : nil
        let passcode = try self.passcode.read()
        let lines = try fileLines()
        // Created before the keychain is opened, so that they get the lowest numbers.
        let files = try fd.map { _ in try sealedMemory { () throws(Errno) in try SealedMemoryFile() } }
        let session = try CommandSession.reading(selected, passcode: passcode)
        for (assignment, file) in zip(fd, files) {
            let secret = try secret(of: assignment, selected, session, reason)
            try sealedMemory { () throws(Errno) in try file.fill(with: secret) }
            try setEnvironment(assignment.name, Data("\(file.descriptor.rawValue)".utf8))
        }
        for line in lines where line.key == nil { try setEnvironment(line.name, Data(line.value.utf8)) }
        var assignments = env + lines.compactMap(\.secret)
        if let listed { assignments += try remaining(of: listed, without: fd + assignments, lines, session, reason) }
        for assignment in assignments {
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

    /// A line of a file of `--env-file`.
    private struct FileLine {
        let name: String
        let value: String
        /// The key of the secret that the value refers to; nil for a value that is used as it is.
        let key: String?

        var secret: SecretAssignment? { key.map { SecretAssignment(name: name, key: $0) } }
    }

    /// Reads the files of `--env-file`.
    ///
    /// Throws for a variable that is given twice: which one applies would depend on the order of the options.
    private func fileLines() throws(CommandFailure) -> [FileLine] {
        let outcome = "the command was not run"
        var names = Set((fd + env).map(\.name))
        var lines: [FileLine] = []
        for path in envFile {
            let file = SourceFile(path: path, outcome: outcome)
            for assignment in try Dotenv(file).assignments {
                let place = "\(file.name), line \(assignment.line)"
                guard VariableName.isValid(assignment.name) else {
                    throw CommandFailure(
                        .usage, "\(place): \(assignment.name) is not the name of a variable; \(outcome)",
                        advice: "Use letters, digits, and underscores.")
                }
                guard names.insert(assignment.name).inserted else {
                    throw CommandFailure(
                        .usage, "\(place): \(assignment.name) is given twice; \(outcome)", advice: "Remove one of the two.")
                }
                let key = assignment.referencedKey
                guard key != "" else {
                    throw CommandFailure(.usage, "\(place): the reference names no key; \(outcome)", advice: "Write NAME=valet:KEY.")
                }
                lines.append(FileLine(name: assignment.name, value: assignment.value, key: key))
            }
        }
        return lines
    }

    /// Returns the keys of the valet for variables that no other option gives.
    private func remaining(
        of valet: any ListableValet, without given: [SecretAssignment], _ lines: [FileLine], _ session: CommandSession, _ reason: String
    ) throws(CommandFailure) -> [SecretAssignment] {
        let names = Set(given.map(\.name) + lines.map(\.name))
        let keys = try session.perform {
            try SelectedValet.allKeys(of: valet, reason: reason, outcome: "the command was not run")
        }
        if let key = keys.first(where: { !VariableName.isValid($0) }) {
            throw CommandFailure(
                .usage, "\(ItemListing.escapingUnprintable(key)) is not the name of a variable; the command was not run",
                advice: "Omit --all, and give the variables with --env NAME=KEY.")
        }
        return keys.filter { !names.contains($0) }.map { SecretAssignment(name: $0, key: $0) }
    }

    private func secret(
        of assignment: SecretAssignment, _ selected: SelectedValet, _ session: CommandSession, _ reason: String
    ) throws(CommandFailure) -> Data {
        do {
            return try session.perform { try selected.valet.object(forKey: assignment.key, withPrompt: reason) }
        } catch {
            let failure = session.addingOtherPlaces(of: assignment.key, than: selected, to: error)
            throw CommandFailure(
                failure.status, "\(failure.problem) (\(place(of: assignment))); the command was not run", advice: failure.advice)
        }
    }

    /// How a message names the variable, and the key if it has another name.
    private func place(of assignment: SecretAssignment) -> String {
        let key = assignment.key == assignment.name ? "" : "key \(ItemListing.escapingUnprintable(assignment.key)), "
        return "\(key)for \(assignment.name)"
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
        switch error {
        case .notFound:
            throw CommandFailure(.commandNotFound, "the command was not found", advice: "Check its name and PATH.")
        case .argumentsTooLarge:
            throw CommandFailure(
                .notExecutable, "the command cannot be executed: its arguments and environment are too large",
                advice: "Pass large secrets with --fd: a variable holds at most 128 KiB.")
        default:
            throw CommandFailure(
                .notExecutable, "the command cannot be executed: \(error)", advice: "Check that the file is executable.")
        }
    }
}

/// `NAME=KEY`, or `NAME` for `NAME=NAME`: the environment variable and the key of its secret.
struct SecretAssignment: ExpressibleByArgument {
    let name: String
    let key: String

    init(name: String, key: String) {
        self.name = name
        self.key = key
    }

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let name = parts.first, let key = parts.last, VariableName.isValid(name), !key.isEmpty else { return nil }
        self.init(name: name, key: key)
    }
}
