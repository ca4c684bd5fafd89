// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem

struct AccessCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "access",
        abstract: "Show, grant, and revoke what programs may read of the items of others, where keychaind keeps the keychain.",
        discussion: """
            keychaind keeps the items of a program from the other programs of the user. A grant lets one of those read all items of an access group, and \
            change none. It lasts until it is revoked, or until the keychain is released.
            """,
        subcommands: [AccessListCommand.self, AccessGrantCommand.self, AccessRevokeCommand.self]
    )

    /// Runs `body` on the keychain that keychaind keeps.
    fileprivate static func perform<Result>(
        _ body: (DaemonKeychain) throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        let session = try CommandSession.forWholeKeychain()
        do throws(KeychainFailure) {
            guard let kept = try session.user.keptKeychain() else {
                throw KeychainFailure(
                    .notAvailable, "the keychain is a file of this user, which every program of the user can read", cause: .notKept)
            }
            return try body(kept)
        } catch {
            throw CommandFailure(access: error)
        }
    }
}

struct AccessListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show which programs may read which access groups of others.")

    @Flag(help: "Print a JSON array.")
    var json = false

    func run() throws {
        let grants = try AccessCommand.perform { kept throws(KeychainFailure) in try kept.grants() }
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            encoder.dateEncodingStrategy = .iso8601
            try StandardOutput.write(try encoder.encode(grants.map(ListedGrant.init)) + Data("\n".utf8))
            return
        }
        for grant in grants {
            try StandardOutput.writeLine("\(grant.program) reads \(grant.group), since \(ItemListing.localTime(grant.date))")
        }
    }

    private struct ListedGrant: Encodable {
        let program: String
        let group: String
        let granted: Date

        init(_ grant: AccessGrant) {
            (program, group, granted) = (grant.program, grant.group, grant.date)
        }
    }
}

struct AccessGrantCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grant", abstract: "Let a program read the items of another program's access group.",
        discussion: """
            keychaind asks for the passcode of the keychain, and names the program and the group. A program that writes secrets to everyone who runs \
            it, such as this command, should not get a grant: it asks for the passcode each time. Any program of the user can make a sandbox with the \
            name of an application, or a job of cron, and so use a grant for these.

            For example, `valet access grant /usr/bin/evolution program:/usr/libexec/goa-daemon`.
            """)

    @OptionGroup
    var names: GrantNames

    func run() throws {
        let program = try names.identityOfFile()
        try AccessCommand.perform { kept throws(KeychainFailure) in try kept.grant(program: program, group: names.group) }
        try StandardOutput.writeLine("\(program) may read all items of \(names.group) from now on.")
    }
}

struct AccessRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Take a grant back, also from programs that run.",
        discussion: "What the program has read already, it may have kept.")

    @OptionGroup
    var names: GrantNames

    func run() throws {
        try AccessCommand.perform { kept throws(KeychainFailure) in try kept.revoke(program: names.identity, group: names.group) }
    }
}

/// The names of a program and of an access group on the command line.
struct GrantNames: ParsableArguments {
    @Argument(
        help: """
            The path of the program's file, or its name as keychaind forms it: program:/PATH, group:NAME for a program with a group of its own, \
            unit:NAME.service, flatpak:APPID, or snap:NAME.
            """)
    var program: String

    @Argument(help: "The access group whose items it may read, such as program:/usr/local/bin/deploy.")
    var group: String

    var identity: String { program.hasPrefix("/") ? "program:\(program)" : program }

    /// The identity, with the path that the kernel has for the file: a grant for another path would have no effect.
    func identityOfFile() throws(CommandFailure) -> String {
        guard program.hasPrefix("/") else { return identity }
        do throws(Errno) {
            return "program:\(try FileSystem.resolve(program))"
        } catch {
            throw CommandFailure(
                .usage, "the file of the program cannot be found: \(error)", advice: "Give the path of the file that is executed.")
        }
    }
}

extension AccessGrant {
    fileprivate var date: Date { Date(timeIntervalSinceReferenceDate: Double(grantedAtSeconds)) }
}

extension CommandSession {
    /// Opens the keychain for a command that reads items of a valet.
    ///
    /// Where keychaind keeps the keychain and the items belong to another program, a person is asked for the passcode, whether there are any items
    /// or not.
    static func reading(_ selected: SelectedValet, passcode: consuming Passcode? = nil) throws(CommandFailure) -> CommandSession {
        let session = try CommandSession(selected.entitlements, passcode: passcode)
        guard selected.accessGroup != SelectedValet.ownApplication else { return session }
        let isForeign = try access { () throws(KeychainFailure) in
            try session.user.keptKeychain().map { kept throws(KeychainFailure) in try !kept.has(selected.accessGroup) }
        }
        guard isForeign == true else { return session }
        // keychaind does not serve a program that declares the group of another one.
        let reader = try CommandSession.forWholeKeychain()
        try access { () throws(KeychainFailure) in try reader.user.keptKeychain()?.requestAccess(to: selected.accessGroup) }
        return reader
    }

    private static func access<Result>(_ body: () throws(KeychainFailure) -> Result) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) { return try body() } catch { throw CommandFailure(access: error) }
    }
}

extension DaemonKeychain {
    /// Whether keychaind gives the program, which declares an access group, this group.
    fileprivate func has(_ group: String) throws(KeychainFailure) -> Bool {
        do throws(KeychainFailure) {
            return try identity().accessGroups.contains(where: group.hasSameBytes)
        } catch {
            guard error.status == .missingEntitlement else { throw error }
            return false
        }
    }
}

extension CommandFailure {
    /// The failure of access to the items of another program.
    fileprivate init(access failure: KeychainFailure) {
        switch (failure.status, failure.refusal) {
        case (_, .passcodeNotSet?):
            self.init(
                .unavailable,
                "the keychain has no passcode, and without one any program of this user could let itself read the items of others",
                advice:
                    "Set a passcode: root takes the keychain back with `valet daemon release`, then run `valet passcode set` and `valet daemon adopt`."
            )
        case (.parameter, _):
            self.init(.usage, failure.reason, advice: "`valet help access grant` describes the names of programs and groups.")
        case (.duplicateItem, _):
            self.init(.alreadyExists, failure.reason, advice: "`valet access list` shows all grants.")
        case (.itemNotFound, nil) where failure.subject == nil:
            self.init(.notFound, failure.reason, advice: "`valet access list` shows all grants.")
        case (.notAvailable, _) where failure.cause == .notKept:
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was changed. `valet daemon adopt` hands the keychain over to keychaind, which separates programs.")
        default: self.init(failure)
        }
    }
}
