// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// A comparison: Valet and the limits with keychains of each size, then the peers.
final class CompareRun {
    private let options: CompareOptions
    private let folder: ThrowAwayFolder
    private var findings = CommandRounds.Findings()

    static func run(_ options: CompareOptions) throws {
        if options.onlyRedraws {
            let known = try Comparison(json: Data(contentsOf: URL(filePath: options.output + "/compare.json")))
            return try report(known.judgedAnew(), to: options.output)
        }
        let folder = try ThrowAwayFolder()
        defer { folder.remove() }
        // Nothing of a run stays behind, whatever happened.
        Descendants.adopt()
        defer { Descendants.end() }
        try report(CompareRun(options: options, folder: folder).comparison(), to: options.output)
    }

    private init(options: CompareOptions, folder: ThrowAwayFolder) {
        self.options = options
        self.folder = folder
    }

    private func comparison() throws -> Comparison {
        let start = Date()
        let machine = Machine.current(folder: folder.path)
        var filler = try KeychainFiller()
        defer { filler.remove() }
        for itemCount in options.itemCounts {
            Program.progress("A keychain of \(itemCount) items ...")
            try measure(itemCount: itemCount, &filler)
        }
        filler.remove()
        try measureOthers()
        return Comparison(
            date: start, command: (["make compare"] + (options.arguments.isEmpty ? [] : [commandOptions])).joined(separator: " "),
            machine: machine, rows: findings.rows, memory: findings.memory, absences: findings.absences, notes: notes(machine))
    }

    private var commandOptions: String { "COMPARE_OPTIONS=\"\(options.arguments.joined(separator: " "))\"" }

    private func measure(itemCount: Int, _ filler: inout KeychainFiller) throws {
        let directory = try folder.makeFolder(String(itemCount))
        let home = directory + "/keychain"
        try filler.makeKeychain(itemCount: itemCount, home: home)
        let environment = Program.environment(keychainHome: home)
        for benchmark in BenchmarkList.all {
            let place = try folder.makeFolder("\(itemCount)/\(benchmark.name)")
            let command = Command(
                Program.path, ["benchmark", benchmark.name, String(itemCount), String(options.sampleCount), place], environment: environment
            )
            findings.rows += try JSONDecoder().decode([Row].self, from: command.output(timeoutSeconds: 1_800))
            try FileManager.default.removeItem(atPath: place)
        }
        for operation in KeychainOperation.allCases {
            let command = Command(Program.path, ["memory", operation.rawValue, String(itemCount)], environment: environment)
            let kibibytes = try JSONDecoder().decode(Int.self, from: command.output(timeoutSeconds: 600))
            findings.memory.append(MemoryRow(.valet, operation, itemCount: itemCount, kibibytes: kibibytes))
        }
        // The command is measured later on the keychain of the usual size.
        if itemCount != Peer.itemCount { try FileManager.default.removeItem(atPath: directory) }
    }

    /// The commands of all peers are measured in turns, so all services are started first.
    private func measureOthers() throws {
        var commands: [any CommandPeer] = []
        Program.progress("keychaind ...")
        if let rows = attempt(
            .valetWithDaemon,
            {
                try DaemonMeasurement(folder: folder, keychainHome: "\(folder.path)/\(Peer.itemCount)/keychain").run(
                    sampleCount: options.sampleCount)
            })
        {
            findings.rows += rows
        }
        attempt(.valetCommand) { try commands.append(ValetCommand(keychainHome: "\(folder.path)/\(Peer.itemCount)/keychain")) }
        var session: SecretServiceSession?
        var desktop: SecretServiceSession?
        var pass: PassPeer?
        defer {
            pass?.end()
            session?.end()
            desktop?.end()
        }
        if options.includesPeers {
            session = attempt(.libsecret) { try SecretServiceSession(home: folder.makeFolder("keyring")) }
            if let session { measureLibsecret(session, &commands) }
            desktop = attempt(.keychainSecretService) { try measureDesktop(&commands) }
            if !findings.rows.contains(where: { $0.contestant == .libsecret }) {
                for contestant in [Contestant.secretTool, .pythonKeyring, .keyringCommand] {
                    findings.absences.append(Comparison.Absence(contestant, reason: "measured on what libsecret has stored"))
                }
            }
            Program.progress("pass and KeePassXC are set up ...")
            pass = attempt(.pass) { try PassPeer(home: folder.makeFolder("pass")) }
            if let pass { commands.append(pass) }
            attempt(.keePassXC) { try commands.append(KeePassXCPeer(home: folder.makeFolder("keepassxc"))) }
        }
        Program.progress("Whole processes ...")
        let found = try CommandRounds(peers: commands, directory: folder.path).run()
        findings.rows += found.rows
        findings.memory += found.memory
        findings.absences += found.absences
    }

    /// Measures all peers that use the Secret Service.
    ///
    /// The later ones use the items that libsecret stored.
    private func measureLibsecret(_ session: SecretServiceSession, _ commands: inout [any CommandPeer]) {
        Program.progress("libsecret with \(Peer.itemCount) items ...")
        guard let output = attempt(.libsecret, { try LibsecretPeer(session: session, directory: folder.path).run() }) else { return }
        add(output, .libsecret)
        attempt(.secretTool) { try commands.append(SecretToolPeer(session: session)) }
        Program.progress("python-keyring ...")
        guard let python = attempt(.pythonKeyring, { try PythonKeyringPeer(session: session) }) else {
            findings.absences.append(Comparison.Absence(.keyringCommand, reason: "it is python-keyring's"))
            return
        }
        if let output = attempt(.pythonKeyring, { try python.run() }) { add(output, .pythonKeyring) }
        commands.append(KeyringCommandPeer(peer: python))
    }

    /// Measures libsecret with our keyring, at the usual size and at the largest one, and leaves the former for whole processes.
    private func measureDesktop(_ commands: inout [any CommandPeer]) throws -> SecretServiceSession {
        let keyring = SecretServiceSession.Keyring.keychain(program: try SecretServiceSession.keychainProgram())
        Program.progress("libsecret with keychain-secret-service, \(Peer.itemCount) items ...")
        let session = try SecretServiceSession(home: folder.makeFolder("desktop"), keyring)
        let output = try LibsecretPeer(session: session, directory: folder.path).run()
        add(output, .libsecretWithKeychain, daemon: .keychainSecretService)
        try commands.append(SecretToolPeer(session: session, .secretToolWithKeychain))
        if let largest = options.itemCounts.max(), largest > Peer.itemCount {
            Program.progress("libsecret with keychain-secret-service, \(largest) items ...")
            // In memory, because each new item waits for a flush. A list of all items is larger than a message may be.
            let memory = try ThrowAwayFolder(in: "/dev/shm")
            defer { memory.remove() }
            let large = try SecretServiceSession(home: memory.makeFolder("desktop"), keyring)
            defer { large.end() }
            let peer = LibsecretPeer(session: large, directory: folder.path, sampleCounts: .init(listings: 0))
            add(try peer.run(itemCount: largest, timeoutSeconds: 7_200), .libsecretWithKeychain, daemon: .keychainSecretService, largest)
        }
        return session
    }

    private func add(
        _ output: PeerOutput, _ contestant: Contestant, daemon: Contestant = .gnomeKeyringDaemon, _ itemCount: Int = Peer.itemCount
    ) {
        findings.rows += output.rows(contestant, itemCount: itemCount)
        for (owner, kibibytes) in [(contestant, output.memoryKibibytes), (daemon, output.daemonMemoryKibibytes)] {
            guard let kibibytes else { continue }
            findings.memory.append(MemoryRow(owner, nil, itemCount: itemCount, kibibytes: kibibytes))
        }
    }

    /// Records that a peer is absent, and the reason.
    @discardableResult
    private func attempt<Result>(_ contestant: Contestant, _ body: () throws -> Result) -> Result? {
        do {
            return try body()
        } catch {
            let reason: String
            switch error {
            case let unavailable as Peer.Unavailable: reason = unavailable.reason
            case let failure as Command.Failure: reason = "\(failure.program): \(failure.reason)"
            default: reason = "\(error)"
            }
            findings.absences.append(Comparison.Absence(contestant, reason: reason))
            return nil
        }
    }

    private func notes(_ machine: Machine) -> [String] {
        var notes = [
            "Samples are few where one takes long, and with fewer than a hundred p99 is the largest of them.",
            "Limits and Valet in one thread take turns, which costs both what they had in the processor's caches.",
            "Valet, raw SQLite, append, and keychain-secret-service return when the data is on the disk. gnome-keyring and KeePassXC rewrite and flush their whole "
                + "file, but not its folder; pass flushes nothing.",
            "pass has a key without a passphrase; KeePassXC's command opens and derives the key of its database at each start.",
        ]
        if ["tmpfs", "ramfs"].contains(machine.fileSystem) {
            notes.append("The folder is in memory: nothing waited for a disk. Set TMPDIR to a folder on one.")
        }
        return notes
    }

    private static func report(_ comparison: Comparison, to folder: String) throws {
        try FileHandle.standardOutput.write(contentsOf: Data((ComparisonTable(comparison).text + "\n").utf8))
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try comparison.json().write(to: URL(filePath: folder + "/compare.json"), options: .atomic)
        try Data(ComparisonChart(comparison).svg.utf8).write(to: URL(filePath: folder + "/compare.svg"), options: .atomic)
        Program.progress("Written: \(folder)/compare.json and compare.svg")
    }
}
