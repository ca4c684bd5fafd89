// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainServices
import Valet

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Copy or move secrets from another valet, from another program, or from any items with one service.",
        discussion: """
            Copies all secrets of the source to the valet selected by the other options, or none: if a key already exists or an item cannot be \
            read, nothing is changed.

            Explicitly named valets that differ in their accessibility only cannot both have a key. To give the items of such a valet another \
            accessibility, name its service, its accessibility, and the same valet with the new one: valet migrate --from-service NAME \
            --from-accessibility when-unlocked --explicit --identifier NAME --accessibility after-first-unlock --remove
            """
    )

    @Option(help: ArgumentHelp("The identifier of the source. (default: default; with --from-group: none)", valueName: "name"))
    var fromIdentifier: String?

    @Option(help: ArgumentHelp("The accessibility of the source. (default: when-unlocked; with --from-service: any)", valueName: "class"))
    var fromAccessibility: AccessibilityOption?

    @Option(help: ArgumentHelp("The access group of the source. (default with --from-service: any)", valueName: "prefix.group"))
    var fromGroup: String?

    @Flag(help: "The source is an iCloud valet; with --from-service: synchronizable items.")
    var fromCloud = false

    @Option(
        help: ArgumentHelp("The source is a Secure Enclave valet with this kind of authentication.", valueName: "kind"))
    var fromSecureEnclave: SecureEnclaveOption?

    @Flag(help: "With --from-secure-enclave: the source is a single-prompt valet.")
    var fromSinglePrompt = false

    @Option(
        help: ArgumentHelp(
            "Migrate all generic passwords with this service instead of a valet; their accounts become keys.", valueName: "service"))
    var fromService: String?

    @Option(
        help: ArgumentHelp(
            """
            Migrate from the same valet of the program with this application identifier, for example the earlier name of an executable \
            file; --app names the program that gets the items.
            """, valueName: "id"))
    var fromApp: String?

    @Flag(help: "Remove the originals after all of them are copied.")
    var remove = false

    @Flag(help: "Show the keys that would be migrated, without changing anything; exit with 5 if one already exists.")
    var dryRun = false

    @Option(
        help: ArgumentHelp("The reason shown in the authentication prompt for the source, which is shown once.", valueName: "text"))
    var reason: String?

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Destination valet")
    var selection: ValetOptions

    func validate() throws {
        // With a service they limit its items; otherwise they name a valet.
        let limitsItems = fromCloud || fromGroup != nil || fromAccessibility != nil
        let namesValet = fromIdentifier != nil || fromSecureEnclave != nil || (limitsItems && fromService == nil)
        if [namesValet, fromService != nil, fromApp != nil].count(where: { $0 }) != 1 {
            throw ValidationError(
                """
                Choose one source: a valet (--from-identifier, --from-accessibility, --from-group, --from-cloud, --from-secure-enclave), \
                items (--from-service, which --from-accessibility, --from-group, and --from-cloud can limit), or another program \
                (--from-app).
                """)
        }
        if fromAccessibility != nil, fromSecureEnclave != nil {
            throw ValidationError("--from-accessibility cannot be combined with --from-secure-enclave.")
        }
        if fromCloud, fromSecureEnclave != nil {
            throw ValidationError("--from-cloud cannot be combined with --from-secure-enclave.")
        }
        if fromCloud, let fromAccessibility, fromAccessibility.cloudAccessibility == nil {
            throw ValidationError("With --from-cloud, choose --from-accessibility when-unlocked or after-first-unlock.")
        }
    }

    func run() throws {
        let destination = try selection.resolve(isOfProgram: fromApp != nil)
        if let fromApp { return try migrate(from: fromApp, to: destination) }
        let (source, owner, service) = try source(for: destination)
        let session = try CommandSession(source.entitlements, passcode: passcode.read())
        do {
            if dryRun {
                try showPlan(session, from: source, to: destination)
            } else {
                try session.perform {
                    try source.migrate(into: destination.valet, removingOriginals: remove)
                }
            }
        } catch let failure as CommandFailure where failure.status == .notFound {
            throw session.addingSources(of: owner, service: service, into: destination, to: Self.nothingToMigrate)
        }
    }

    static let nothingToMigrate = nothingToMigrate("Check the --from options")

    /// With --from-app, the other options select the valet of both programs.
    static let nothingToMigrateFromProgram = nothingToMigrate(
        "Check --from-app, and --identifier and --accessibility, which select the valet of both programs")

    private static func nothingToMigrate(_ advice: String) -> CommandFailure {
        CommandFailure(
            .notFound, "the source has no items to migrate",
            advice: "\(advice); `valet apps` shows which programs and valets have items.")
    }

    private func migrate(from application: String, to destination: SelectedValet) throws {
        let source = try ProgramMigration(from: application, to: destination)
        if reason != nil {
            throw CommandFailure(.usage, "--reason has no effect: no secret is shown to a program", advice: "Omit --reason.")
        }
        let session = try CommandSession(source.entitlements, passcode: passcode.read())
        do {
            if dryRun {
                let (keys, existingKeys) = try session.perform { (try source.keys(removingOriginals: remove), try source.existingKeys()) }
                guard !keys.isEmpty else { throw Self.nothingToMigrateFromProgram }
                let refused = session.placesOfOtherAccessibility(of: keys, in: source.destination)
                try show(keys, existingKeys: existingKeys, refused: refused, advice: Self.advice(for: refused))
            } else {
                try session.perform { try source.migrate(removingOriginals: remove) }
            }
        } catch let failure as CommandFailure where failure.status == .notFound {
            throw session.addingSources(of: application, service: destination.service, into: destination, to: failure)
        }
    }

    /// Returns the source, the program or group that its items belong to, and their service.
    private func source(
        for destination: SelectedValet
    ) throws(CommandFailure) -> (MigrationSource, owner: String, service: String) {
        let enclave = try SecureEnclaveSelection(
            fromSecureEnclave, isSinglePrompt: fromSinglePrompt, names: ("--from-secure-enclave", "--from-single-prompt"))
        if let fromService {
            if let fromGroup { _ = try SelectedValet.parse(group: fromGroup) }
            let source = MigrationSource.service(
                fromService, fromAccessibility, group: fromGroup, isCloud: fromCloud, reason: reason ?? "",
                destination.entitlements(alsoReaching: fromGroup))
            return (source, fromGroup ?? destination.accessGroup, fromService)
        }
        let source = try SelectedValet(
            identifier: fromIdentifier, accessibility: fromAccessibility ?? .whenUnlocked, group: fromGroup, isCloud: fromCloud,
            isExplicit: false, enclave: enclave, application: destination.application
        )
        if reason != nil, !source.requiresAuthentication {
            throw CommandFailure(
                .usage, "--reason has no effect: reading the source does not require authentication",
                advice: "Omit --reason, or add --from-secure-enclave.")
        }
        guard AnyHashable(source.valet) != AnyHashable(destination.valet) else {
            throw CommandFailure(
                .usage, "source and destination are the same valet",
                advice: "Choose another destination with --identifier or --accessibility.")
        }
        let entitlements = destination.entitlements(alsoReaching: source)
        return (.valet(source.valet, reason: reason ?? "", entitlements), source.accessGroup, source.service)
    }

    private func showPlan(_ session: CommandSession, from source: MigrationSource, to destination: SelectedValet) throws {
        let (keys, existingKeys) = try session.perform {
            let keys = try source.keys()
            return (keys, try keys.filter { try destination.valet.containsObject(forKey: $0) })
        }
        let others = session.placesOfOtherAccessibility(of: keys, in: destination)
        // A move changes the accessibility of such an item.
        let isOwn = others.allSatisfy { source.contains($0.place) }
        let refused = remove ? others.filter { !source.contains($0.place) } : others
        let advice = isOwn && existingKeys.isEmpty ? "Add --remove: an item cannot have two accessibilities." : Self.advice(for: refused)
        try show(keys, existingKeys: existingKeys, refused: refused, advice: advice)
    }

    private static func advice(for refused: [(key: String, place: ItemPlace)]) -> String {
        let options = refused.first.flatMap { PlaceDescription($0.place).options }
        let hint = options.map { " (those with a different accessibility with \($0))" } ?? ""
        return "Remove these keys\(hint), or choose another destination."
    }

    private func show(
        _ keys: [String], existingKeys: [String], refused: [(key: String, place: ItemPlace)], advice: String
    ) throws(CommandFailure) {
        if keys.isEmpty { throw Self.nothingToMigrate }
        let existing = Set(existingKeys.map { Array($0.utf8) })
        let ofOtherAccessibility = Set(refused.map { Array($0.key.utf8) })
        for key in keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let note =
                if existing.contains(Array(key.utf8)) {
                    "\t(already exists)"
                } else {
                    ofOtherAccessibility.contains(Array(key.utf8)) ? CommandFailure.otherAccessibilityNote : ""
                }
            try StandardOutput.writeLine((StandardOutput.isTerminal ? ItemListing.escapingUnprintable(key) : key) + note)
        }
        if !existingKeys.isEmpty || !refused.isEmpty {
            throw CommandFailure(
                .alreadyExists, "some keys already exist in the destination, so nothing would be migrated", advice: advice)
        }
    }
}
