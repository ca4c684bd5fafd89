// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSystem
import Valet

struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Write the secret of a key to standard output.",
        discussion: "Writes the bytes unchanged. A newline is added only on a terminal."
    )

    @Argument(help: "The key of the secret.", completion: .keys)
    var key: String

    @Option(
        help: ArgumentHelp(
            "Write to this file instead, atomically and readable only by you. An existing file is replaced.", valueName: "file"),
        completion: .file()
    )
    var output: String?

    @OptionGroup
    var reason: ReasonOption

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func run() throws {
        let selected = try selection.resolve()
        let reason = try reason.text(for: selected)
        let outputPath = try output.map { path throws(CommandFailure) in
            try BackupPath.absolute(path, alternative: "omit --output: standard output is the default")
        }
        let session = try CommandSession.reading(selected, passcode: passcode.read())
        if let outputPath { try session.perform { try session.keychain.requireWritable(outputPath) } }
        var secret: Data
        do throws(CommandFailure) {
            secret = try session.perform { try selected.valet.object(forKey: key, withPrompt: reason) }
        } catch {
            throw session.addingOtherPlaces(of: key, than: selected, to: error)
        }
        if let outputPath {
            try OutputFile.write(secret, to: outputPath, alternative: "omit --output and redirect standard output")
        } else {
            if StandardOutput.isTerminal { secret.append(UInt8(ascii: "\n")) }
            try StandardOutput.write(secret)
        }
    }
}

/// The file of `--output`: published atomically, readable only by its owner.
enum OutputFile {
    /// `alternative` is what to do if the output is for something else than a file.
    static func write(_ data: Data, to path: String, alternative: String) throws(CommandFailure) {
        // Renaming over a device, a pipe or a link would put a file in its place.
        if let status = try? FileStatus(of: path), status.kind != .regularFile {
            throw CommandFailure(
                .usage, "the path given to --output is not a regular file",
                advice: "Give the path of a file, or \(alternative)."
            )
        }
        do throws(KeychainFailure) {
            _ = try AtomicFile(path).write(replacingExisting: true) { writer throws(KeychainFailure) in try writer.append(data) }
        } catch {
            throw CommandFailure(
                .unavailable, "cannot write the file given to --output: \(error.reason)",
                advice: "Check that its directory exists, is writable, and has free space."
            )
        }
    }
}

struct ExistsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exists",
        abstract: "Exit with 0 if a secret exists under a key, and with 1 if not.",
        discussion: "Prints nothing. Any other exit code means that the lookup could not be performed."
    )

    @Argument(help: "The key to look for.", completion: .keys)
    var key: String

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func run() throws {
        let selected = try selection.resolve()
        let session = try CommandSession.reading(selected, passcode: passcode.read())
        let exists = try session.perform { try selected.valet.containsObject(forKey: key) }
        if !exists { throw ExitCode(ExitStatus.notFound.rawValue) }
    }
}
