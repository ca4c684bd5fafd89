// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// `keepassxc-cli merge` with a database of each device and one that both reach.
final class KeePassXCSync: SyncPeer {
    let contestant = Contestant.keePassXCMerge
    let state: String
    var shared: String { state + "/shared" }
    private let home: String
    private let itemCount: Int
    private let password = UUID().uuidString
    private let environment: [String: String]

    init(home: String, itemCount: Int) throws {
        try Peer.require(["keepassxc-cli"], packages: "keepassxc")
        (self.home, self.itemCount, state) = (home, itemCount, home + "/state")
        environment = Peer.environment(home: home, ["QT_QPA_PLATFORM": "offscreen"])
        try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: true)
        try Peer.attempt {
            try importDatabase(KeePassXML(itemCount: itemCount))
            for device in SyncDevice.allCases { try copy(database, to: local(device)) }
        }
    }

    func set(_ key: Int, to value: String, on device: SyncDevice) throws {
        _ = try make(["edit", "-q", "-p", local(device), FilledValet.key(key)], input: value + "\n").output(timeoutSeconds: 120)
    }

    /// Moves the entry to the recycle bin, as the application does.
    func remove(_ key: Int, on device: SyncDevice) throws {
        _ = try make(["rm", "-q", local(device), FilledValet.key(key)]).output(timeoutSeconds: 600)
    }

    func value(_ key: Int, on device: SyncDevice) throws -> String? {
        show("/" + FilledValet.key(key), on: device)
    }

    func otherValues(_ key: Int, on device: SyncDevice) throws -> [KeptValue] {
        let export = try make(["export", "-q", local(device)]).output(timeoutSeconds: 600)
        let versions = try KeePassXML.passwords(ofEntry: FilledValet.key(key), in: export).map { KeptValue.version($0) }
        return versions + [show("/Recycle Bin/" + FilledValet.key(key), on: device)].compactMap(\.self).map { .recycled($0) }
    }

    /// What the other device has sent meanwhile would be overwritten without the merge.
    @discardableResult
    func send(from device: SyncDevice) throws -> Bool {
        let warned = try receive(on: device)
        try copy(local(device), to: database)
        return warned
    }

    /// The command exits with 0 whether or not it loses a value; it says which on its output.
    @discardableResult
    func receive(on device: SyncDevice) throws -> Bool {
        let merge = make(["merge", "-s", local(device), database])
        let command = Command(
            "sh", ["-c", "exec \"$0\" \"$@\" 2>&1", merge.program] + merge.arguments, environment: environment, input: merge.input)
        return String(decoding: try command.output(timeoutSeconds: 120), as: UTF8.self).contains("may lose data")
    }

    @discardableResult
    func synchronize(_ device: SyncDevice) throws -> Bool { try send(from: device) }

    /// Changes every entry repeatedly, with the history that the application keeps.
    ///
    /// The other device gets a database without any changes, because those of an import are older than all others.
    func makeMissedChanges(_ count: Int) throws {
        try importDatabase(KeePassXML(itemCount: itemCount))
        try copy(database, to: local(.other))
        var versions = KeePassXML(itemCount: itemCount)
        versions.changeCount = count
        try importDatabase(versions)
        try copy(database, to: local(.one))
    }

    private var database: String { shared + "/passwords.kdbx" }

    private func local(_ device: SyncDevice) -> String { "\(state)/\(device).kdbx" }

    private func importDatabase(_ versions: KeePassXML) throws {
        let export = home + "/export.xml"
        try versions.text.write(toFile: export, atomically: false, encoding: .utf8)
        try? FileManager.default.removeItem(atPath: database)
        _ = try Command(
            "keepassxc-cli", ["import", "-q", "-p", export, database], environment: environment, input: "\(password)\n\(password)\n"
        ).output(timeoutSeconds: 600)
        try FileManager.default.removeItem(atPath: export)
    }

    /// A path that begins with a slash is not looked for in other groups.
    private func show(_ entry: String, on device: SyncDevice) -> String? {
        let output = try? make(["show", "-q", "-s", "-a", "Password", local(device), entry]).output(timeoutSeconds: 60)
        return output.map { String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines) }
    }

    private func make(_ arguments: [String], input: String = "") -> Command {
        Command("keepassxc-cli", arguments, environment: environment, input: password + "\n" + input)
    }

    private func copy(_ file: String, to target: String) throws {
        _ = try Command("cp", [file, target], environment: environment).output(timeoutSeconds: 120)
    }
}
