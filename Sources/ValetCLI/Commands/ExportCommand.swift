// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainEngine
import KeychainSystem
import Valet

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the secrets of a valet, unencrypted.",
        discussion: """
            For programs that read files. Everything that can read the output has the secrets, and so has every copy and backup of it. To \
            move secrets to another keychain use `valet backup create`; to pass them to a program use `valet run`.

            Writes everything, or nothing. The format dotenv needs keys that are names of variables, and both formats need secrets that are \
            text. An import of the output stores the same secrets. A shell that sources it reads a carriage return, which dotenv writes as \\r, as a \
            backslash and a letter.
            """
    )

    enum Format: String, CaseIterable, ExpressibleByArgument {
        case dotenv, json
    }

    @Option(help: "The format: NAME=VALUE lines, or a JSON object of keys and secrets.")
    var format: Format

    @Option(
        help: ArgumentHelp("Write to this new file, atomically and readable only by you.", valueName: "file"), completion: .file())
    var output: String?

    @Option(help: ArgumentHelp("Write to this open file descriptor; 1 is standard output.", valueName: "number"))
    var outputFD: Int32?

    @Flag(help: "With --output: replace an existing file.")
    var force = false

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    @OptionGroup
    var reason: ReasonOption

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet")
    var selection: ValetOptions

    func validate() throws {
        if (output == nil) == (outputFD == nil) { throw ValidationError("Give one destination: --output or --output-fd.") }
        if force, output == nil { throw ValidationError("--force needs --output.") }
    }

    func run() throws {
        let selected = try selection.resolve()
        let reason = try reason.text(for: selected)
        let valet = try selected.requireListable()
        let destination = try outputFD.map { number throws(CommandFailure) in try Self.openDescriptor(number) }
        let path = try output.map { path throws(CommandFailure) in
            try BackupPath.absolute(path, alternative: "use --output-fd 1 for standard output")
        }
        let session = try CommandSession.reading(selected, passcode: passcode.read())
        if let path {
            try session.perform { try session.keychain.requireWritable(path) }
            guard force || !FileSystem.exists(path) else { throw BackupFailure.alreadyExists(path) }
        }
        let secrets = try session.perform { try Self.secrets(of: valet, reason) }
        let text = try Self.text(secrets, format)
        try Confirmation.require(
            """
            Write \(secrets.count == 1 ? "1 secret" : "\(secrets.count) secrets") with \(PlaceDescription(selected.place).shownOptions) \
            unencrypted?
            """, isGiven: yes, "export", otherwise: "nothing was written")
        if let path {
            try OutputFile.write(Data(text.utf8), to: path, alternative: "use --output-fd, such as --output-fd 1 for standard output")
        } else if let destination {
            do throws(Errno) {
                try destination.writeAll(text.utf8)
            } catch {
                throw CommandFailure(
                    .unavailable, "cannot write to file descriptor \(destination.rawValue): \(error)",
                    advice: "The output is incomplete. Check its destination.")
            }
        }
    }

    private static func openDescriptor(_ number: Int32) throws(CommandFailure) -> FileDescriptor {
        let descriptor = FileDescriptor(rawValue: number)
        guard InheritedDescriptors.contains(descriptor) else {
            throw CommandFailure(
                .usage, "file descriptor \(number) is not open; nothing was written",
                advice: "Open it for the command, for example `--output-fd 3 3>file`.")
        }
        return descriptor
    }

    /// Returns the secrets as text, in the order of their keys.
    private static func secrets(of valet: any ListableValet, _ reason: String) throws -> [(key: String, secret: String)] {
        try SelectedValet.allKeys(of: valet, reason: reason, outcome: "nothing was written").map { key in
            let secret = try valet.object(forKey: key, withPrompt: reason)
            guard let text = String(validating: secret, as: UTF8.self) else {
                throw CommandFailure(
                    .usage, "the secret of \(ItemListing.escapingUnprintable(key)) is not UTF-8 text; nothing was written",
                    advice: "Read it with `valet get`, or use `valet backup create`.")
            }
            return (key, text)
        }
    }

    private static func text(_ secrets: [(key: String, secret: String)], _ format: Format) throws -> String {
        switch format {
        case .dotenv:
            var text = ""
            for (key, secret) in secrets {
                do throws(Dotenv.Unwritable) {
                    text += try Dotenv.line(key, secret)
                } catch {
                    let name = ItemListing.escapingUnprintable(key)
                    let problem =
                        switch error {
                        case .name: "\(name) is not the name of a variable"
                        case .nulByte: "the secret of \(name) contains a NUL byte"
                        case .reference: "the secret of \(name) begins with valet: and contains an apostrophe or a carriage return"
                        }
                    throw CommandFailure(.usage, "\(problem); nothing was written", advice: "Use --format json.")
                }
            }
            return text
        case .json:
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            // Encoded one by one: a dictionary takes two keys for one if they differ only in their Unicode normalization.
            let members = try secrets.map { "  \(try quoted($0.key, encoder)): \(try quoted($0.secret, encoder))" }
            return "{\n" + members.joined(separator: ",\n") + "\n}\n"
        }
    }
    private static func quoted(_ text: String, _ encoder: JSONEncoder) throws -> String {
        String(decoding: try encoder.encode(text), as: UTF8.self)
    }
}
