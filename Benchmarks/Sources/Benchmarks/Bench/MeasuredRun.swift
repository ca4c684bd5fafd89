// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// A run of all measurements.
struct MeasuredRun {
    private let options: Options
    private let folder: ThrowAwayFolder

    static func run(_ options: Options) throws {
        let folder = try ThrowAwayFolder()
        defer { folder.remove() }
        // Nothing of a run stays behind, whatever happened.
        Descendants.adopt()
        defer { Descendants.end() }
        try MeasuredRun(options: options, folder: folder).run()
    }

    private func run() throws {
        var table = Table()
        var reports: [Report] = []
        var filler = try KeychainFiller()
        defer { filler.remove() }
        for itemCount in Set([1_000, 10_000, options.largeItemCount]).sorted() {
            Program.progress("A keychain of \(itemCount) items ...")
            reports.append(try measureValet(itemCount: itemCount, &filler))
        }
        Program.progress("A keychain under a passcode ...")
        let lock = try measureLock(home: folder.makeFolder("locked"))
        var processes: [Summary] = []
        do {
            Program.progress("valet get ...")
            let command = try ValetCommand(keychainHome: "\(folder.path)/1000/keychain")
            processes.append(try measureReading(command).summary(.valetProcess))
        } catch let unavailable as Peer.Unavailable {
            table.skipped.append("valet get: \(unavailable.reason)")
        }
        if options.includesPeers {
            do {
                Program.progress("libsecret with \(Peer.itemCount) items ...")
                reports.append(try measureLibsecret())
            } catch let unavailable as Peer.Unavailable {
                table.skipped.append("libsecret: \(unavailable.reason)")
            }
        }
        table.print(reports: reports, lock: lock, processes: processes)
    }

    private func measureLock(home: String) throws -> Report {
        var environment = Program.environment(keychainHome: home)
        environment["KEYCHAIN_PINENTRY"] = try scriptedPinentry(directory: home)
        let command = Command(Program.path, ["lock", String(options.sampleCount)], environment: environment)
        return try JSONDecoder().decode(Report.self, from: command.output(timeoutSeconds: 600))
    }

    /// Creates a script that speaks pinentry's protocol and enters the passcode immediately.
    private func scriptedPinentry(directory: String) throws -> String {
        let path = directory + "/pinentry"
        let script = """
            #!/bin/sh
            echo OK
            while read -r request; do
                case $request in
                GETPIN) echo "D \(LockMeasurement.passcode)"; echo OK ;;
                BYE) echo OK; exit ;;
                *) echo OK ;;
                esac
            done
            """
        try script.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        return path
    }

    private func measureValet(itemCount: Int, _ filler: inout KeychainFiller) throws -> Report {
        let directory = try folder.makeFolder(String(itemCount))
        let home = directory + "/keychain"
        try filler.makeKeychain(itemCount: itemCount, home: home)
        let command = Command(
            Program.path, ["measure", String(itemCount), String(options.sampleCount), directory],
            environment: Program.environment(keychainHome: home))
        return try JSONDecoder().decode(Report.self, from: command.output(timeoutSeconds: 3_600))
    }

    private func measureLibsecret() throws -> Report {
        let session = try Peer.attempt { try SecretServiceSession(home: folder.makeFolder("keyring")) }
        defer { session.end() }
        let output = try LibsecretPeer(session: session, directory: folder.path).run()
        let tool = try measureReading(SecretToolPeer(session: session))
        let figures: [(Figure, KeychainOperation)] = [(.libsecretLookup, .get), (.libsecretStore, .overwrite), (.libsecretNew, .setNew)]
        let summaries = figures.compactMap { figure, operation in output.samples[operation]?.summary(figure) }
        return Report(itemCount: Peer.itemCount, summaries: summaries + [tool.summary(.secretToolProcess)], peakMemory: 0)
    }

    /// Measures a whole process that reads one of a thousand items.
    private func measureReading(_ peer: any CommandPeer) throws -> Samples {
        try Peer.attempt {
            try Samples.measure(peer.sampleCount) { try peer.command(.get, $0)?.run() }
        }
    }
}
