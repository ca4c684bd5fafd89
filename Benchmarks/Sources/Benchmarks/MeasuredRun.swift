// SPDX-License-Identifier: Apache-2.0
import Foundation

/// One run over everything.
struct MeasuredRun {
    let options: Options

    func run() throws {
        let directory = FileManager.default.temporaryDirectory.path + "/keychain-benchmark-" + UUID().uuidString.lowercased()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }

        var table = Table()
        var reports: [Report] = []
        for itemCount in Set([1_000, 10_000, options.largeItemCount]).sorted() {
            progress("A keychain of \(itemCount) items ...")
            reports.append(try measureValet(itemCount: itemCount, directory: "\(directory)/\(itemCount)"))
        }
        progress("A keychain under a passcode ...")
        let lock = try measureLock(home: directory + "/locked")
        var processes: [Summary] = []
        do {
            progress("valet get ...")
            processes.append(try measureCommand(keychainHome: "\(directory)/1000/keychain"))
        } catch let unavailable as Peers.Unavailable {
            table.skipped.append("valet get: \(unavailable.reason)")
        }
        if options.includesPeers {
            do {
                progress("libsecret with 1000 items ...")
                let home = directory + "/peer"
                try FileManager.default.createDirectory(
                    atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
                reports.append(try Peers.measure(directory: home, itemCount: 1_000))
            } catch let unavailable as Peers.Unavailable {
                table.skipped.append("libsecret: \(unavailable.reason)")
            }
        }
        table.print(reports: reports, lock: lock, processes: processes)
    }

    private func measureLock(home: String) throws -> Report {
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        var environment = environment(home)
        environment["KEYCHAIN_PINENTRY"] = try scriptedPinentry(directory: home)
        let output = try MeasuredProcess.output(
            of: Program.path, ["lock", String(options.sampleCount)], environment: environment, timeoutSeconds: 600)
        return try JSONDecoder().decode(Report.self, from: output)
    }

    /// A person who types the passcode at once: a script that speaks pinentry's protocol.
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

    private func measureValet(itemCount: Int, directory: String) throws -> Report {
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let home = directory + "/keychain"
        let scratch = try fillInMemory(itemCount: itemCount)
        defer { try? FileManager.default.removeItem(atPath: scratch) }
        try FileManager.default.copyItem(atPath: scratch, toPath: home)
        let output = try MeasuredProcess.output(
            of: Program.path, ["measure", String(itemCount), String(options.sampleCount), directory], environment: environment(home),
            timeoutSeconds: 3_600)
        return try JSONDecoder().decode(Report.self, from: output)
    }

    /// Filling waits for the disk at each item, so it is done where that costs nothing; the closed files are then copied.
    private func fillInMemory(itemCount: Int) throws -> String {
        let memory = "/dev/shm"
        let base = FileManager.default.isWritableFile(atPath: memory) ? memory : FileManager.default.temporaryDirectory.path
        let home = base + "/keychain-benchmark-" + UUID().uuidString.lowercased()
        do {
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            _ = try MeasuredProcess.output(
                of: Program.path, ["fill", String(itemCount)], environment: environment(home), timeoutSeconds: 7_200)
        } catch {
            try? FileManager.default.removeItem(atPath: home)
            throw error
        }
        return home
    }

    /// The whole process, from start to end, reading one item of a keychain of a thousand.
    private func measureCommand(keychainHome: String) throws -> Summary {
        let command = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: ".build/release/valet").path
        guard FileManager.default.isExecutableFile(atPath: command) else {
            throw Peers.Unavailable(reason: "\(command) is not there: run `make release`")
        }
        let environment = environment(keychainHome)
        do {
            _ = try MeasuredProcess.output(
                of: command, ["set", "measured"], input: LibsecretMeasurement.value, environment: environment, timeoutSeconds: 60)
        } catch let failure as MeasuredProcess.Failure {
            throw Peers.Unavailable(reason: failure.reason)
        }
        return try Samples.measure(50) { _ in
            guard try MeasuredProcess.run(command, ["get", "measured"], environment: environment) == 0 else {
                throw Peers.Unavailable(reason: "valet get failed")
            }
        }.summary(.valetProcess)
    }

    private func environment(_ home: String) -> [String: String] {
        ["KEYCHAIN_HOME": home, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"]
    }

    private func progress(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
    }
}
