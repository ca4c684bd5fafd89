// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainSystem
import Valet

/// The command `valet`: parses the arguments, runs the subcommand, and reports an error in two lines and an exit code.
@main
struct ValetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "valet",
        abstract: "Store and read secrets in the keychain.",
        discussion: """
            Secrets are read from standard input or prompted for without echo. Secrets and passcodes are never command-line arguments.

            EXIT CODES
              0  done
              1  not found
              2  wrong usage
              3  the keychain is locked or unavailable
              4  stored data is damaged
              5  already exists
              126  `valet run` only: the command cannot be executed
              127  `valet run` only: the command was not found

            Otherwise `valet run` exits with the status of the command.

            ENVIRONMENT
              VALET_IDENTIFIER, VALET_ACCESSIBILITY, VALET_GROUP, VALET_APP
                             defaults for the options of the same names
              KEYCHAIN_HOME  the directory of the keychain, an absolute path
              KEYCHAIN_PROTECTOR
                             the protector of a new keychain: keyFile, systemdCredential, or tpm2
              KEYCHAIN_PINENTRY
                             the absolute path of the pinentry program; empty: prompt on the terminal
              KEYCHAIN_TPM_TCTI
                             the TPM in tpm2-tss TCTI syntax (default: device:/dev/tpmrm0)
              TSS2_LOG       the log levels of tpm2-tss (default: all+NONE)
            """,
        version: "\(projectVersion)",
        subcommands: [
            SetCommand.self, GetCommand.self, ListCommand.self, AppsCommand.self, ExistsCommand.self, RemoveCommand.self,
            MigrateCommand.self, ImportCommand.self, ExportCommand.self, RunCommand.self, StatusCommand.self, VerifyCommand.self,
            RepairCommand.self, PasscodeCommand.self, UnlockCommand.self, LockCommand.self, BackupCommand.self, ProtectorCommand.self,
            RecoveryCommand.self, SyncCommand.self, DaemonCommand.self,
            AccessCommand.self, SecretServiceCommand.self,
        ]
    )

    static func main() {
        ProcessHardening.apply()
        TPMLibraryLog.silence()
        WarningLog.start()
        do {
            try ArgumentText.requireUTF8()
            try requireHelpTopic(in: ArgumentText.all)
            var command = try parseAsRoot(ArgumentText.all)
            guard type(of: command).configuration.subcommands.isEmpty else { reportMissingSubcommand(of: type(of: command)) }
            try command.run()
            WarningLog.report()
        } catch let failure as CommandFailure {
            WarningLog.report()
            failure.report()
            CurrentProcess.exit(with: failure.status.rawValue)
        } catch let code as ExitCode {
            WarningLog.report()
            CurrentProcess.exit(with: code.rawValue)
        } catch {
            report(parserError: error)
        }
    }

    /// Throws if the arguments ask for help on a subcommand that does not exist, for which the parser shows the help of `valet`.
    private static func requireHelpTopic(in arguments: [String]) throws(CommandFailure) {
        guard arguments.first == "help" else { return }
        var command: any ParsableCommand.Type = ValetCommand.self
        for name in arguments.dropFirst() where !name.hasPrefix("-") && name != "help" {
            guard let subcommand = command.configuration.subcommands.first(where: { $0.configuration.commandName == name }) else {
                throw CommandFailure(
                    .usage, "there is no subcommand \(ItemListing.escapingUnprintable(name))", advice: "`valet help` lists the subcommands."
                )
            }
            command = subcommand
        }
    }

    /// Writes help to standard error: a script that passes no arguments by mistake must not take it for a result.
    private static func reportMissingSubcommand(of command: any ParsableCommand.Type) -> Never {
        StandardError.write(helpMessage(for: command))
        CurrentProcess.exit(with: ExitStatus.usage.rawValue)
    }

    /// Writes help and the version to standard output, and a usage error to standard error.
    private static func report(parserError error: any Error) -> Never {
        let message = fullMessage(for: error)
        if exitCode(for: error).isSuccess {
            do {
                try StandardOutput.write(Data((message + "\n").utf8))
            } catch {
                error.report()
                CurrentProcess.exit(with: error.status.rawValue)
            }
            CurrentProcess.exit(with: ExitStatus.done.rawValue)
        }
        StandardError.write(message)
        CurrentProcess.exit(with: ExitStatus.usage.rawValue)
    }
}

/// The log of tpm2-tss, which writes to standard error unless the environment variable TSS2_LOG says otherwise.
enum TPMLibraryLog {
    private static let variable = "TSS2_LOG"

    /// Whether `silence` set the variable.
    ///
    /// Written once, before the process has a second thread.
    nonisolated(unsafe) private static var isVariableSet = false

    /// Turns the log off unless the person has set the variable.
    ///
    /// A privileged process removes the variables instead: see `ProcessEnvironment`.
    ///
    /// Call before the process has a second thread, because it changes the environment.
    static func silence() {
        if ProcessEnvironment.isPrivileged {
            // Set by the caller, who must not control the log of this process.
            for name in [variable, "TSS2_LOGFILE"] { ProcessEnvironment.remove(name) }
            return
        }
        guard !ProcessEnvironment.contains(variable) else { return }
        unsafe isVariableSet = ProcessEnvironment.set(variable, to: "all+NONE".utf8)
    }

    /// Removes the variable if `silence` set it, so that a command that replaces this process does not inherit it.
    static func restore() {
        if unsafe isVariableSet { ProcessEnvironment.remove(variable) }
    }
}

/// The arguments as the system passed them.
///
/// `CommandLine.arguments` replaces invalid UTF-8, so two different keys would become equal, and is empty without /proc.
enum ArgumentText {
    /// The arguments after the name of the program, as text.
    ///
    /// An argument that is not UTF-8, which only the command after `--` of `valet run` may be, is replaced by a placeholder.
    static var all: [String] { (1..<max(count, 1)).map { text($0) ?? "\u{FFFD}" } }

    /// Throws if an argument of valet is not UTF-8.
    ///
    /// The arguments after `--` of `valet run` belong to the other command and may be any bytes.
    static func requireUTF8() throws(CommandFailure) {
        let isRun = count > 1 && text(1) == "run"
        let own = isRun ? terminator ?? count : count
        for index in 0..<own where text(index) == nil {
            throw CommandFailure(
                .usage, "an argument is not valid UTF-8",
                advice: "Keys and option values must be UTF-8. Check the encoding of your terminal or script.")
        }
    }

    /// Replaces this process with the command after the first `--`, with its arguments byte for byte.
    ///
    /// Returns only if that fails, with the error.
    static func executeCommandAfterTerminator() -> Errno {
        guard let terminator else { return .notFound }
        return Execution.replaceProcess(withArgumentsFrom: terminator + 1)
    }

    private static var count: Int { ProcessArguments.count }

    private static var terminator: Int? { (0..<count).first { text($0) == "--" } }

    /// An argument; nil if it is not UTF-8.
    private static func text(_ index: Int) -> String? { ProcessArguments.text(at: index) }
}
