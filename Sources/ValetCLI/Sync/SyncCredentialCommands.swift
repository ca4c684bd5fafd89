// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainSync
import KeychainSystem

/// Credentials of readers that any number of machines can be.
struct SyncCredentialCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Make a credential with which any number of machines read the items of the circle.",
        discussion: """
            For servers: each joins without a person, with `valet sync join FOLDER --credential FILE`, reads what the circle has, and writes nothing. \
            `valet sync devices` lists a credential as one device, and `valet sync remove` ends it.
            """,
        subcommands: [SyncCredentialCreateCommand.self]
    )
}

struct SyncCredentialCreateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Admit a reader, and write its credential.",
        discussion: """
            The credential is written to standard output, which must not be a terminal, or to a new file, and is stored nowhere else. Everything \
            that can read it can read all shared items.

            Machines refuse it when it has expired. A thief can set a clock back, and loses access only by `valet sync remove`. To \
            replace a credential, create another one, give it to the machines, and remove this one.
            """
    )

    @Option(help: ArgumentHelp("The name of the credential for people, such as the service that uses it.", valueName: "name"))
    var name: String

    @Option(
        help: ArgumentHelp("How long machines accept it: a number with h, d, or w, such as 90d (maximum 3650d).", valueName: "time"),
        transform: CredentialValidity.init(parsing:))
    var valid: CredentialValidity

    @Option(help: ArgumentHelp("Write to this new file, readable only by you.", valueName: "file"), completion: .file())
    var output: String?

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try SyncSession(passcode)
        let path = try output.map { path throws(CommandFailure) in
            try BackupPath.absolute(path, alternative: "omit --output: standard output is the default")
        }
        if let path {
            // Before a reader is admitted.
            guard !FileSystem.exists(path) else {
                throw CommandFailure(
                    .alreadyExists, "\(ItemListing.escapingUnprintable(path)) already exists; nothing was changed",
                    advice: "Give the path of a new file.")
            }
        } else if StandardOutput.isTerminal {
            throw CommandFailure(
                .usage, "standard output is a terminal, which would show the credential; nothing was changed",
                advice: "Give the path of a new file with --output.")
        }
        let storage = try session.storage()
        let (name, duration) = (name, valid.duration)
        let credential = try session.perform { () async throws(SyncFailure) in
            try await KeychainSync.makeCredential(named: name, validFor: duration, on: storage)
        }
        do {
            try write(credential, to: path)
        } catch {
            throw CommandFailure(
                .unavailable, "\(ItemListing.escapingUnprintable(name)) was admitted, but its credential could not be written: \(error)",
                advice: "The credential was lost. Remove it with `valet sync remove`, then create another one.")
        }
        StandardError.write(
            "\(ItemListing.escapingUnprintable(name)) was admitted as a reader. Its credential expires on \(SyncText.time(credential.expires))."
        )
    }

    private func write(_ credential: SyncCredential, to path: String?) throws {
        guard let path else {
            CurrentProcess.ignoreBrokenPipeSignal()
            return try FileDescriptor.standardOutput.writeAll(try credential.encoded())
        }
        try credential.write(toPath: path)
    }
}

/// How long a credential is valid, as on the command line: `90d`.
struct CredentialValidity {
    let duration: Duration

    private static let hoursOfUnit: [Character: Int] = ["h": 1, "d": 24, "w": 168]

    init(parsing argument: String) throws(ValidationError) {
        let digits = argument.dropLast()
        guard let hours = argument.last.flatMap({ Self.hoursOfUnit[$0] }), !digits.isEmpty, digits.utf8.count <= 6,
            digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains), let number = Int(digits)
        else { throw ValidationError("Give a whole number and a unit (h, d, or w), such as 90d.") }
        guard (1...3_650 * 24).contains(number * hours) else { throw ValidationError("The minimum is 1h, and the maximum 3650d.") }
        duration = .seconds(number * hours * 3_600)
    }
}

/// A credential in a file or from a descriptor.
struct CredentialInput {
    let path: String?
    let descriptor: Int32?

    /// More than the largest credential.
    private static let byteLimit = 262_144

    /// Returns nil without a path and a descriptor.
    ///
    /// Call this before opening any file: otherwise a descriptor that the caller did not open could be one of this process.
    func read() throws(CommandFailure) -> SyncCredential? {
        if let descriptor {
            var bytes = try Self.contents(of: FileDescriptor(rawValue: descriptor))
            defer { bytes.wipe() }
            return try Self.parsed { () throws(SyncFailure) in try SyncCredential(Data(bytes)) }
        }
        guard let path else { return nil }
        let file = try BackupPath.absolute(path, alternative: "use --credential-fd 0 for standard input")
        return try Self.parsed { () throws(SyncFailure) in try SyncCredential(path: file) }
    }

    private static func parsed(_ body: () throws(SyncFailure) -> SyncCredential) throws(CommandFailure) -> SyncCredential {
        do throws(SyncFailure) { return try body() } catch { throw CommandFailure(error) }
    }

    private static func contents(of descriptor: FileDescriptor) throws(CommandFailure) -> [UInt8] {
        let number = descriptor.rawValue
        guard InheritedDescriptors.contains(descriptor) else {
            throw CommandFailure(
                .usage, "file descriptor \(number) is not open", advice: "Open it for the command, for example `--credential-fd 3 3<file`.")
        }
        do throws(Errno) {
            if let contents = try descriptor.readToEnd(byteLimit: byteLimit) { return contents }
        } catch {
            throw CommandFailure(
                .usage, "cannot read file descriptor \(number): \(error)",
                advice: "Open it for the command, for example `--credential-fd 3 3<file`.")
        }
        throw CommandFailure(SyncFailure(.invalidCredential, "file descriptor \(number) has more than a credential"))
    }
}
