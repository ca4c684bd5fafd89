// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainServices
import Valet

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Copy or move secrets from another valet, or from any items with one service.",
        discussion: """
            All secrets of the source go into the valet that the other options choose, or none: if one key is already there, or one item cannot be \
            read, the keychain stays as it was.
            """
    )

    @Option(help: ArgumentHelp("The identifier of the source. (default: default; with --from-group: none)", valueName: "name"))
    var fromIdentifier: String?

    @Option(help: ArgumentHelp("The accessibility of the source. (default: when-unlocked)", valueName: "class"))
    var fromAccessibility: AccessibilityOption?

    @Option(help: ArgumentHelp("The access group of the source.", valueName: "prefix.group"))
    var fromGroup: String?

    @Option(
        help: ArgumentHelp(
            "Not from a valet, but from all generic passwords with this service; their accounts become keys.", valueName: "service"))
    var fromService: String?

    @Flag(help: "Remove the originals once all of them are copied.")
    var remove = false

    @Flag(help: "Only show the keys that would go, and exit with 5 if one of them is already there.")
    var dryRun = false

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet they go into")
    var selection: ValetSelection

    func validate() throws {
        let namesValet = fromIdentifier != nil || fromAccessibility != nil || fromGroup != nil
        if namesValet == (fromService != nil) {
            throw ValidationError(
                "Say where from: --from-identifier, --from-accessibility and --from-group name a valet, --from-service any items.")
        }
    }

    func run() throws {
        let destination = try selection.resolve()
        let source = try source(for: destination)
        let session = try CommandSession(source.entitlements, passcode: passcode.read())
        do {
            if dryRun {
                try showPlan(session, from: source, to: destination)
            } else {
                try session.perform {
                    try source.requireReadable()
                    try source.migrate(into: destination.valet, removingOriginals: remove)
                }
            }
        } catch let failure as CommandFailure where failure.status == .notFound {
            throw CommandFailure(
                .notFound, "there is nothing to move", advice: "Check the options that say where from; see `valet help migrate`.")
        }
    }

    private func source(for destination: SelectedValet) throws(CommandFailure) -> MigrationSource {
        if let fromService { return .service(fromService, destination.entitlements) }
        let source = try SelectedValet(
            identifier: fromIdentifier, accessibility: fromAccessibility ?? .whenUnlocked, group: fromGroup, isCloud: false,
            isExplicit: false, application: destination.application
        )
        guard source.valet != destination.valet else {
            throw CommandFailure(
                .usage, "source and destination are the same valet", advice: "Choose another one with --identifier or --accessibility.")
        }
        return .valet(source.valet, destination.entitlements(alsoReaching: source))
    }

    private func showPlan(_ session: CommandSession, from source: MigrationSource, to destination: SelectedValet) throws {
        let (keys, present) = try session.perform { (try source.keys(), try destination.valet.allKeys()) }
        if keys.isEmpty { throw CommandFailure(.itemNotFound, because: nil) }
        for key in keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let note = present.contains(key) ? "\t(already there)" : ""
            try StandardOutput.writeLine((StandardOutput.isTerminal ? ItemListing.printable(key) : key) + note)
        }
        if !present.isDisjoint(with: keys) {
            throw CommandFailure(.alreadyThere, "nothing would be moved", advice: "Remove what is already there, or choose another valet.")
        }
    }
}
