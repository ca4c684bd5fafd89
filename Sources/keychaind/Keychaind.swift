// SPDX-License-Identifier: Apache-2.0
internal import ArgumentParser
internal import KeychainCore
internal import KeychainIPC
internal import KeychainPeers
internal import KeychainSystem

/// The program `keychaind`: keeps the keychains of all users, and separates their programs.
@main
struct Keychaind: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keychaind", abstract: "Keep the keychains of all users, and separate their programs.",
        discussion: """
            Runs in the foreground, as a user of its own. Ends at SIGTERM, after the calls that were received. Uses the socket that systemd passes to \
            it, if any.
            """)

    @Option(help: ArgumentHelp("Listen at this path.", valueName: "path"))
    var socket = DaemonClient.standardSocketPath

    @Option(help: ArgumentHelp("Keep the keychains in this directory.", valueName: "path"))
    var directory = "/var/lib/keychain"

    @Option(help: ArgumentHelp("Read the entitlements of programs with a group of their own in this directory.", valueName: "path"))
    var entitlements = DaemonClient.registrationDirectory

    @Option(help: ArgumentHelp("Ask keychain-peer, which looks at the files of programs, at this path.", valueName: "path"))
    var peerSocket = "/run/keychain-peer/keychain-peer.sock"

    @Option(help: ArgumentHelp("Tell programs to start the agent that shows prompts at this path.", valueName: "path"))
    var agent = Self.standardAgentPath

    /// Beside this program.
    private static var standardAgentPath: String {
        (CurrentProcess.executablePath.map(FileSystem.parent) ?? "/usr/local/libexec") + "/keychain-agent"
    }

    @Option(help: ArgumentHelp("Keep at most this many MiB of each user.", valueName: "MiB"))
    var sizeLimit = 256

    @Option(help: ArgumentHelp("Keep at most this many items of each user.", valueName: "count"))
    var itemLimit = 100_000

    @Option(help: ArgumentHelp("Let this user watch the sessions of all users, and lock their keychains.", valueName: "name"))
    var watcher = "keychain-watch"

    @Option(help: ArgumentHelp("Lock all keychains if sessions are not watched any more for this time.", valueName: "seconds"))
    var watcherTimeout: UInt32 = 10

    @Option(help: ArgumentHelp("Ask keychain-fprint-digest, which reads the prints of fingers, at this path.", valueName: "path"))
    var digestSocket = "/run/keychain-fprint-digest/keychain-fprint-digest.sock"

    func validate() throws {
        for (option, path) in [
            ("--socket", socket), ("--directory", directory), ("--entitlements", entitlements), ("--peer-socket", peerSocket),
            ("--agent", agent), ("--digest-socket", digestSocket),
        ]
        where !path.hasPrefix("/") {
            throw ValidationError("\(option) must be an absolute path")
        }
        // An empty keychain has some pages already. More does not fit into a database.
        guard (1...1 << 20).contains(sizeLimit) else { throw ValidationError("--size-limit must be from 1 to 1048576") }
        guard itemLimit > 0 else { throw ValidationError("--item-limit must be greater than 0") }
    }

    func run() throws {
        let service: Service
        let fingerprints = Fingerprints(secretsIn: "\(directory)/biometry", PrintDigests(path: digestSocket))
        let keychains = UserKeychains(
            in: directory, quota: StoreQuota(byteCount: sizeLimit << 20, rowCount: itemLimit), fingerprints: fingerprints)
        let directory = RegistrationDirectory(entitlements)
        let services = SharedServices(
            beginUse: { user, storeID throws(KeychainFailure) in try keychains.beginUse(ofUser: user, storeID: storeID) },
            endUse: { keychains.endUse(ofUser: $0) },
            identify: { facts, declared throws(KeychainFailure) in
                let registrations = try directory.registrations()
                let identity = PeerIdentity(facts, registrations: registrations)
                try identity.requireGroups(of: declared, facts, registrations: registrations)
                return IdentifiedProgram(
                    identity: identity, entitlements: identity.entitlements(declared: declared, registrations: registrations),
                    registrations: registrations)
            }, inspector: ProgramInspector(socketAt: peerSocket), accounts: Accounts(known: keychains.users),
            agents: Agents(program: agent), keychains: keychains,
            sessions: SessionWatch(keychains, watcher: watcher, timeoutSeconds: watcherTimeout),
            fingerprints: fingerprints)
        do throws(Errno) {
            service = try Service(services, try listening())
            // No other instance has them now.
            keychains.removeIncompleteCopies()
        } catch .exists {
            throw CannotListen(description: "another process listens at \(socket)")
        } catch {
            throw CannotListen(description: "cannot listen at \(socket): \(error)")
        }
        let signals = TerminationSignals { _ in service.end() }
        ServiceManager.notifyReady()
        service.run()
        withExtendedLifetime(signals) {}
    }

    private func listening() throws(Errno) -> PacketListener {
        if let listener = PacketListener(passedBySystemdIn: ProcessEnvironment.variables) { return listener }
        return try PacketListener(at: socket)
    }

    static func main() {
        // First: no core dumps, and no tracing by other processes of the same user.
        ProcessHardening.apply()
        CurrentProcess.ignoreBrokenPipeSignal()
        // Each connection and each store takes some.
        CurrentProcess.raiseDescriptorLimit()
        main(nil)
    }
}

/// Why the service does not start, although it was called correctly.
private struct CannotListen: Error, CustomStringConvertible {
    let description: String
}
