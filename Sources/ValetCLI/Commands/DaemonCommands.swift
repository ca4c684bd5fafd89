// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem

struct DaemonCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "daemon",
        abstract: "Let keychaind keep the keychain, or take it back.",
        discussion: """
            keychaind is a service that keeps the keychains of all users where the users cannot read them. A program with a group of its own, which root \
            has registered, has secrets there that no other program of the user can read.
            """,
        subcommands: [DaemonStatusCommand.self, DaemonAdoptCommand.self, DaemonReleaseCommand.self]
    )

    fileprivate static var client: DaemonClient {
        DaemonClient(
            entitlements: Entitlements(applicationIdentifier: SelectedValet.ownApplication),
            connector: DaemonClient.connector(toSocketAt: DaemonClient.standardSocketPath))
    }

    /// Returns the store to which the signpost in the place of the keychain points; nil without one.
    fileprivate static func signpost(of session: CommandSession) throws(CommandFailure) -> StoreID? {
        do throws(KeychainFailure) {
            _ = try session.keychain.storeID()
            return nil
        } catch {
            if case .keptByDaemon(let storeID) = error.cause { return storeID }
            guard error.status == .itemNotFound else { throw CommandFailure(error) }
            return nil
        }
    }

    fileprivate static func perform<Result>(_ body: () throws(KeychainFailure) -> Result) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw CommandFailure(daemon: error)
        }
    }

    fileprivate static func items(_ count: Int) -> String { count == 1 ? "1 item" : "\(count) items" }
}

struct DaemonStatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show whether keychaind keeps the keychain, and what it knows about this program.")

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        let path = try DaemonCommand.perform { () throws(KeychainFailure) in try session.keychain.configuration().storePath }
        if let storeID = try DaemonCommand.signpost(of: session) {
            try show([("Keychain", "\(path), kept by keychaind"), ("Store", storeID.hexadecimal)])
            let identity = try DaemonCommand.perform { () throws(KeychainFailure) in try session.user.keptKeychain()?.identity() }
            guard let identity else { return }
            try show([
                ("keychaind", "running"),
                ("Program", identity.level.description),
                ("Groups", identity.accessGroups.joined(separator: ", ")),
            ])
        } else {
            try show([("Keychain", "\(path), a file of this user")])
            // Without a keychain there is no identifier.
            try show([("keychaind", Self.descriptionOfService(storeID: try? session.keychain.storeID()))])
        }
    }

    private static func descriptionOfService(storeID: StoreID?) -> String {
        do throws(KeychainFailure) {
            switch try DaemonHandover(DaemonCommand.client).keptKeychain() {
            case (.nothing, _): return "running; it keeps no keychain of this user. `valet daemon adopt` hands this one over"
            case (.prepared, let kept?) where kept != storeID:
                return
                    "running; a handover of another keychain, \(kept.hexadecimal), was interrupted. `valet daemon adopt` with its KEYCHAIN_HOME repeats it"
            case (.incomplete, _), (.prepared, _):
                return "running; a handover to it goes on, or was interrupted. `valet daemon adopt` repeats it"
            case (.releasing, _): return "running; a release by it was interrupted. `valet daemon release` completes it, as root"
            case (.inUse, let kept):
                guard let kept else { return "running; it keeps a keychain of this user" }
                guard kept == storeID else {
                    return
                        "running; it keeps another keychain of this user, \(kept.hexadecimal). `valet daemon release` puts it in its file, as root"
                }
                return
                    "running; it keeps this keychain too, so the file is an older copy. Move it away with its key file, and `valet daemon release` puts the newer one there, as root"
            }
        } catch {
            return error.reason
        }
    }

    private func show(_ lines: [(title: String, text: String)]) throws(CommandFailure) {
        for (title, text) in lines {
            try StandardOutput.writeLine(
                (title + ":").padding(toLength: 14, withPad: " ", startingAt: 0) + ItemListing.escapingUnprintable(text))
        }
    }
}

struct DaemonAdoptCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adopt", abstract: "Hand the keychain over to keychaind.",
        discussion: """
            keychaind copies the keychain and the copy is compared item by item. Then a signpost takes the place of the file, and the key file is \
            removed. All programs of this user use keychaind from then on, also those that run. An interruption leaves either the file or keychaind \
            in charge; run the command again then.
            """)

    func run() throws {
        let session = try CommandSession.forWholeKeychain()
        let connector = DaemonClient.connector(toSocketAt: DaemonClient.standardSocketPath)
        if let storeID = try DaemonCommand.signpost(of: session) {
            try DaemonCommand.perform { () throws(KeychainFailure) in try session.keychain.finishHandover(of: storeID, to: connector) }
            return try StandardOutput.writeLine("keychaind keeps this keychain.")
        }
        let report: HandoverReport
        do throws(KeychainFailure) {
            report = try session.keychain.handOver(to: connector)
        } catch {
            // Another process may have handed it over meanwhile.
            guard (try? DaemonCommand.signpost(of: session)) != nil else { throw CommandFailure(daemon: error) }
            return try StandardOutput.writeLine("keychaind keeps this keychain.")
        }
        try StandardOutput.writeLine("keychaind keeps this keychain now, with \(DaemonCommand.items(report.rowCount)). All were compared.")
    }
}

struct DaemonReleaseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "release", abstract: "Take the keychain back from keychaind, as root.",
        discussion: """
            Puts the keychain in the place of its signpost, after a comparison item by item, and deletes it from keychaind. All programs of the user can \
            read all of it then. Only root may do that, because any program of the user could take the secrets of the others otherwise. With sudo, \
            this is the keychain of the person who runs sudo, in the standard place or in KEYCHAIN_HOME.
            """)

    @Option(help: ArgumentHelp("Release the keychain of the user with this number.", valueName: "number"))
    var user: UInt32?

    @Flag(
        help:
            "Also if there is no signpost in the place: the keychain is put there, and not where its programs look for it, if that is another place."
    )
    var withoutSignpost = false

    func run() throws {
        guard CurrentProcess.effectiveUserID == 0 else {
            throw CommandFailure(
                .unavailable, "only root may take a keychain back", advice: "Run `sudo valet daemon release`, or ask the administrator to.")
        }
        let variables = ProcessEnvironment.variables
        let user = user ?? variables["SUDO_UID"].flatMap(UInt32.init) ?? 0
        // keychaind knows this process as root from now on.
        let handover = try DaemonCommand.perform { () throws(KeychainFailure) in try DaemonHandover(DaemonCommand.client) }
        if user != 0 {
            do throws(Errno) {
                try CurrentProcess.become(user: user)
            } catch {
                throw CommandFailure(
                    .unavailable, "this process cannot become user \(user): \(error)",
                    advice: "Check the number of the user with `id -u NAME`, and run the command again.")
            }
        }
        let session = try CommandSession.forWholeKeychain()
        let report = try DaemonCommand.perform { () throws(KeychainFailure) in
            try session.keychain.takeBack(ofUser: user, from: handover, requiresSignpost: !withoutSignpost)
        }
        try StandardOutput.writeLine(
            report.rowCount == 0
                ? "The keychain is in its file again." : "The keychain is in its file again, with \(DaemonCommand.items(report.rowCount)).")
        guard let path = report.keptCopyPath else { return }
        try StandardOutput.writeLine(
            "The file differs from what keychaind has given back, so keychaind has kept that in \(path). Delete it if nothing is missing.")
    }
}

extension AssuranceLevel {
    fileprivate var description: String {
        switch self {
        case .none: "any program of this user"
        case .verifiedFile: "known by its file, or its service, which only root can change"
        case .sandbox: "a sandboxed program"
        case .credential: "has a group of its own"
        }
    }
}

extension CommandFailure {
    /// The failure of a handover.
    init(daemon failure: KeychainFailure) {
        switch (failure.status, failure.cause) {
        case (.unimplemented, _):
            self.init(.usage, failure.reason, advice: "Nothing was changed. Run the command again then.")
        case (.duplicateItem, _) where failure.subject == .store:
            self.init(
                .alreadyExists, failure.reason,
                advice: "Nothing was changed. Then run the command again; `sudo KEYCHAIN_HOME=… valet daemon release` uses another place.")
        case (.notAvailable, .missing?) where failure.subject == .store:
            self.init(
                .unavailable, failure.reason,
                advice:
                    "Nothing was changed. `sudo KEYCHAIN_HOME=… valet daemon release` uses another place; if the signpost is lost, add --without-signpost."
            )
        case (.notAvailable, .otherStore?) where failure.subject == .store:
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was changed. `sudo KEYCHAIN_HOME=… valet daemon release` uses the place of another signpost.")
        case (.duplicateItem, _):
            self.init(
                .alreadyExists, failure.reason,
                advice:
                    "Nothing was changed. Each user has one keychain there: `valet daemon status` with the KEYCHAIN_HOME of the other one shows it."
            )
        case (.itemNotFound, _):
            self.init(
                .notFound, failure.reason, advice: "Nothing was changed. `valet daemon status`, as the user, shows where the keychain is.")
        case (.notAvailable, .missing?) where failure.subject == nil:
            self.init(
                .unavailable, failure.reason,
                advice: "Nothing was changed. `make install-daemon` installs keychaind; start it, and run the command again.")
        case (.notAvailable, .outcomeUnknown?):
            self.init(.unavailable, failure.reason, advice: "Run the command again. Until then programs may be refused.")
        case (.notAvailable, .busy?):
            self.init(.unavailable, failure.reason, advice: "Nothing was changed. Run the command again.")
        default: self.init(failure)
        }
    }
}
