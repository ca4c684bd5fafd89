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
        help: ArgumentHelp("The source is a Secure Enclave valet, whose items a person has to release in this way.", valueName: "way"))
    var fromSecureEnclave: SecureEnclaveOption?

    @Flag(help: "With --from-secure-enclave: the valet that asks once.")
    var fromSinglePrompt = false

    @Option(
        help: ArgumentHelp(
            "Not from a valet, but from all generic passwords with this service; their accounts become keys.", valueName: "service"))
    var fromService: String?

    @Flag(help: "Remove the originals once all of them are copied.")
    var remove = false

    @Flag(help: "Only show the keys that would go, and exit with 5 if one of them is already there.")
    var dryRun = false

    @Option(
        help: ArgumentHelp("What the person who has to release the secrets of the source is told; they are asked once.", valueName: "text"))
    var reason: String?

    @OptionGroup
    var passcode: PasscodeOption

    @OptionGroup(title: "Which valet they go into")
    var selection: ValetOptions

    func validate() throws {
        let namesValet = [fromIdentifier, fromGroup, fromAccessibility?.rawValue, fromSecureEnclave?.rawValue].contains { $0 != nil }
        if namesValet == (fromService != nil) {
            throw ValidationError(
                """
                Say where from: --from-identifier, --from-accessibility, --from-group and --from-secure-enclave name a valet, --from-service \
                any items.
                """)
        }
        if fromAccessibility != nil, fromSecureEnclave != nil {
            throw ValidationError("--from-accessibility does not go with --from-secure-enclave.")
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
                    try source.migrate(into: destination.valet, removingOriginals: remove)
                }
            }
        } catch let failure as CommandFailure where failure.status == .notFound {
            throw CommandFailure(
                .notFound, "there is nothing to move", advice: "Check the options that say where from; see `valet help migrate`.")
        }
    }

    private func source(for destination: SelectedValet) throws(CommandFailure) -> MigrationSource {
        let enclave = try SecureEnclaveSelection(
            fromSecureEnclave, isSinglePrompt: fromSinglePrompt, names: ("--from-secure-enclave", "--from-single-prompt"))
        if let fromService { return .service(fromService, reason: reason ?? "", destination.entitlements) }
        let source = try SelectedValet(
            identifier: fromIdentifier, accessibility: fromAccessibility ?? .whenUnlocked, group: fromGroup, isCloud: false,
            isExplicit: false, enclave: enclave, application: destination.application
        )
        if reason != nil, !source.valet.asks {
            throw CommandFailure(
                .usage, "nobody is asked for the items of the source, so there is nobody to tell a reason",
                advice: "Leave out --reason, or add --from-secure-enclave.")
        }
        guard source.valet != destination.valet else {
            throw CommandFailure(
                .usage, "source and destination are the same valet", advice: "Choose another one with --identifier or --accessibility.")
        }
        return .valet(source.valet, reason: reason ?? "", destination.entitlements(alsoReaching: source))
    }

    private func showPlan(_ session: CommandSession, from source: MigrationSource, to destination: SelectedValet) throws {
        let (keys, present) = try session.perform {
            let keys = try source.keys()
            return (keys, try keys.filter { try destination.valet.containsObject(forKey: $0) })
        }
        if keys.isEmpty { throw CommandFailure(.itemNotFound, because: nil) }
        for key in keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let note = present.contains(key) ? "\t(already there)" : ""
            try StandardOutput.writeLine((StandardOutput.isTerminal ? ItemListing.printable(key) : key) + note)
        }
        if !present.isEmpty {
            throw CommandFailure(.alreadyThere, "nothing would be moved", advice: "Remove what is already there, or choose another valet.")
        }
    }
}
