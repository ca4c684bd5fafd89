// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import KeychainSystem
import Valet

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Store the secrets of a file or of another program.",
        discussion: """
            Stores all secrets, or none if the source is damaged or one of them cannot be stored. Reads each one back before it counts. The \
            source is never changed. A key that exists with another value is left alone unless --overwrite is given; the command then exits \
            with 5 after storing the others. Nothing is stored if a key of an explicitly named valet exists with another accessibility. A key \
            that has several values in the source is an error, or is left out with --omit-repeated.
            """,
        subcommands: [
            ImportDotenvCommand.self, ImportJSONCommand.self, ImportNetrcCommand.self, ImportPassCommand.self, ImportDockerCommand.self,
            ImportCSVCommand.self, ImportSecretServiceCommand.self,
        ]
    )
}

/// The options of every import.
struct ImportOptions: ParsableArguments {
    @Flag(help: "Show the keys and where they come from, never the secrets, without storing anything.")
    var dryRun = false

    @Flag(help: "Replace existing secrets.")
    var overwrite = false

    @Flag(help: "Leave out each key that has several values in the source, and show it. Without this, such a key is an error.")
    var omitRepeated = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Destination valet")
    var selection: ValetOptions

    /// Imports everything that the source contains.
    func importSecrets(from source: some SecretSource) throws {
        let selected = try selection.resolve()
        guard !selected.requiresAuthentication else {
            throw CommandFailure(
                .usage, "an import cannot read back what it stores in a Secure Enclave valet without a prompt for each secret",
                advice: "Import without --secure-enclave, then use `valet migrate --secure-enclave ... --remove`.")
        }
        let passcode = try passcode.read()
        var content = try source.read()
        if omitRepeated { content.omitRepeatedKeys() } else { try content.requireOneValueForEachKey(in: source.name) }
        let session = try CommandSession(selected.entitlements, passcode: passcode)
        if !content.secrets.isEmpty { try session.requireUnlocked(for: selected.accessibility) }
        let (plan, refused) = try withProgress(count: content.secrets.count) { progress in
            let plan = try session.perform {
                try ImportPlan(content, into: selected, overwriting: overwrite, progress: progress)
            }
            let refused = session.placesOfOtherAccessibility(of: plan.newKeys, in: selected)
            if !refused.isEmpty { return (plan, refused) }
            if !dryRun { try session.perform { try plan.execute(in: selected, progress: progress) } }
            session.warnOfOtherPlaces(of: content.secrets.lazy.map(\.key), than: selected)
            return (plan, refused)
        }
        if dryRun { try plan.show(refusedKeys: refused.map(\.key)) }
        if let failure = CommandFailure.otherAccessibility(of: refused, than: selected) { throw failure }
        if !dryRun { try plan.report() }
    }

    private func withProgress<Result>(count: Int, _ body: (ImportProgress) throws -> Result) rethrows -> Result {
        let progress = ImportProgress(count: count)
        defer { progress.end() }
        return try body(progress)
    }
}

struct ImportDotenvCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dotenv",
        abstract: "Import the variables of a .env file.",
        discussion: """
            The names of the variables become keys. What different programs read differently, such as ${NAME} or a # inside a value, is an \
            error unless it is in single quotes. In double quotes, \\n is a line feed, as for Docker Compose and unlike in a shell.
            """
    )

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        try options.importSecrets(from: DotenvSource(file: SourceFile(path: file)))
    }
}

struct ImportJSONCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "json",
        abstract: "Import the members of a JSON object, as `valet export --format json` writes them.",
        discussion: "The names of the members become keys. Every value must be text."
    )

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        try options.importSecrets(from: JSONSource(file: SourceFile(path: file)))
    }
}

struct ImportNetrcCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "netrc",
        abstract: "Import the passwords of a .netrc file.",
        discussion: "The keys are MACHINE/LOGIN, or MACHINE for an entry without a login."
    )

    @Argument(help: "The file; - for standard input. (default: ~/.netrc)", completion: .file())
    var file: String?

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        let path = try file ?? HomeDirectory.path("/.netrc")
        try options.importSecrets(from: NetrcSource(file: SourceFile(path: path)))
    }
}

struct ImportPassCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pass",
        abstract: "Import the entries of pass, the standard Unix password manager.",
        discussion: """
            Decrypts each entry with gpg, which may ask for the passphrase of its key. The names of the entries become keys, such as \
            Email/example.com.
            """
    )

    @Argument(help: "The directory of the entries. (default: PASSWORD_STORE_DIR, or ~/.password-store)", completion: .directory)
    var directory: String?

    @Flag(help: "Store only the first line of each entry, as `pass --clip` copies it.")
    var firstLine = false

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        let variable = ProcessEnvironment.variables["PASSWORD_STORE_DIR"].flatMap { $0.isEmpty ? nil : $0 }
        let path = try directory ?? variable ?? HomeDirectory.path("/.password-store")
        try options.importSecrets(from: PasswordStoreSource(directory: path, takesFirstLineOnly: firstLine))
    }
}

struct ImportDockerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "docker",
        abstract: "Import the passwords and tokens in the configuration of Docker.",
        discussion: """
            The keys are REGISTRY/USER, or REGISTRY for a token. Registries whose secret is kept by a credential helper are shown and left \
            out.
            """
    )

    @Argument(help: "The file; - for standard input. (default: config.json in DOCKER_CONFIG or ~/.docker)", completion: .file())
    var file: String?

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        let variable = ProcessEnvironment.variables["DOCKER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let path = try file ?? variable.map { $0 + "/config.json" } ?? HomeDirectory.path("/.docker/config.json")
        try options.importSecrets(from: DockerSource(file: SourceFile(path: path)))
    }
}

struct ImportCSVCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "csv",
        abstract: "Import the passwords of a CSV file from Bitwarden, 1Password, KeePassXC, Firefox, or Chrome.",
        discussion: """
            The format is recognized by the names of the columns. The keys are NAME/USER, or NAME for an entry without a user; those of \
            KeePassXC begin with the names of the groups below the root. Entries without a name, notes, other fields, and one-time password \
            seeds are left out and shown.
            """
    )

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        try options.importSecrets(from: PasswordTableSource(file: SourceFile(path: file)))
    }
}

struct ImportSecretServiceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secret-service",
        abstract: "Import the entries of GNOME Keyring, KWallet, KeePassXC, or another Secret Service.",
        discussion: """
            Reads them over the session bus (D-Bus). The keys are LABEL/USER, or LABEL for an entry without a user and for a label that \
            contains the user. Other attributes are left out.
            """
    )

    @Argument(help: "The label or identifier of a collection, such as Login. (default: all)")
    var collection: String?

    @Flag(help: "Let the Secret Service ask for the password of what is locked. Without this, a locked collection is an error.")
    var unlock = false

    @OptionGroup
    var options: ImportOptions

    func run() throws {
        let bus = DBusAddress.session(ProcessEnvironment.variables)
        try options.importSecrets(from: SecretServiceSource(collection: collection, unlocks: unlock, bus: bus))
    }
}

/// Files at their usual place.
private enum HomeDirectory {
    static func path(_ suffix: String) throws(CommandFailure) -> String {
        guard let home = ProcessEnvironment.variables["HOME"], !home.isEmpty else {
            throw CommandFailure(.usage, "HOME is not set, so the usual place of the source is unknown", advice: "Give its path.")
        }
        return home + suffix
    }
}
