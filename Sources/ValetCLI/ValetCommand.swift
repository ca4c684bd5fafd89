// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainSystem

/// The command `valet` itself: parses, runs the subcommand, and turns what went wrong into two lines and an exit code.
@main
struct ValetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "valet",
        abstract: "Keep secrets in the keychain, and read them back.",
        discussion: """
            Secrets are read from standard input or asked for without echo; they are never arguments, and passcodes neither.

            EXIT CODES
              0  done
              1  not found
              2  wrong usage
              3  the keychain is locked or unavailable
              4  something stored is damaged
              5  already there

            ENVIRONMENT
              VALET_IDENTIFIER, VALET_ACCESSIBILITY, VALET_GROUP, VALET_APP
                             defaults of the options of the same names
              KEYCHAIN_HOME  a folder that holds the keychain in place of the usual one
              KEYCHAIN_PROTECTOR
                             what protects a new keychain: keyFile, systemdCredential or tpm2
              KEYCHAIN_PINENTRY
                             the program that asks for passcodes, an absolute path; empty: the terminal
              KEYCHAIN_TPM_TCTI
                             where the TPM is, as tpm2-tss names it; device:/dev/tpmrm0 if unset
            """,
        version: "0.1.0",
        subcommands: [
            SetCommand.self, GetCommand.self, ListCommand.self, ExistsCommand.self, RemoveCommand.self, MigrateCommand.self,
            RunCommand.self, StatusCommand.self, VerifyCommand.self, RepairCommand.self, PasscodeCommand.self, UnlockCommand.self,
            LockCommand.self,
            BackupCommand.self, ProtectorCommand.self, RecoveryCommand.self,
        ]
    )

    static func main() {
        ProcessHardening.apply()
        WarningLog.start()
        do {
            try ArgumentText.requireUTF8()
            var command = try parseAsRoot()
            try command.run()
            WarningLog.report()
        } catch let failure as CommandFailure {
            WarningLog.report()
            failure.report()
            Foundation.exit(failure.status.rawValue)
        } catch let code as ExitCode {
            WarningLog.report()
            Foundation.exit(code.rawValue)
        } catch {
            report(parserError: error)
        }
    }

    /// Help and versions go to standard output with success, wrong usage to standard error with the documented code.
    private static func report(parserError error: any Error) -> Never {
        let message = fullMessage(for: error)
        if exitCode(for: error).isSuccess {
            do {
                try StandardOutput.write(Data((message + "\n").utf8))
            } catch {
                error.report()
                Foundation.exit(error.status.rawValue)
            }
            Foundation.exit(ExitStatus.done.rawValue)
        }
        StandardError.write(message)
        Foundation.exit(ExitStatus.usage.rawValue)
    }
}

/// The arguments as the system gave them.
///
/// Swift repairs what is not UTF-8, and so two different keys would become one.
enum ArgumentText {
    /// Throws if an argument of ours is not UTF-8.
    ///
    /// What follows `--` after `run` belongs to the command to run, and may be any bytes.
    static func requireUTF8() throws(CommandFailure) {
        let isRun = count > 1 && text(1) == "run"
        let own = isRun ? terminator ?? count : count
        for index in 0..<own where text(index) == nil {
            throw CommandFailure(.usage, "an argument is not valid UTF-8", advice: "Keys and names are text: give them as UTF-8.")
        }
    }

    /// Replaces this process by the command after the first `--`, byte for byte as it was given.
    ///
    /// Returns the error number, only if that failed.
    static func executeCommandAfterTerminator() -> Errno {
        guard let terminator else { return .notFound }
        return Execution.replaceProcess(withArgumentsFrom: terminator + 1)
    }

    private static var count: Int { ProcessArguments.count }

    private static var terminator: Int? { (0..<count).first { text($0) == "--" } }

    /// Nil: not UTF-8.
    private static func text(_ index: Int) -> String? { ProcessArguments.text(at: index) }
}
