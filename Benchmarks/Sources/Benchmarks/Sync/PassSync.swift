// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation

/// `pass`, or a program with the same files and commands, with a git repository that both devices reach.
final class PassSync: SyncPeer {
    let contestant: Contestant
    let state: String
    var shared: String { state + "/shared" }
    private let home: String
    private let itemCount: Int
    private let key: GnuPGKey
    private var program: String { contestant == .gopassWithGit ? "gopass" : "pass" }
    private var isEncrypted: Bool { contestant == .passWithGcrypt }

    /// The entries are encrypted by a few processes of gpg, because a command for each would take minutes.
    init(_ contestant: Contestant, home: String, itemCount: Int) throws {
        (self.contestant, self.home, self.itemCount, state) = (contestant, home, itemCount, home + "/state")
        let program = contestant == .gopassWithGit ? "gopass" : "pass"
        try Peer.require([program, "git", "gpg"], packages: "\(program) git gnupg")
        if contestant == .passWithGcrypt { try Peer.require(["git-remote-gcrypt"], packages: "git-remote-gcrypt") }
        // gopass passes its standard input to the editor, and has no other way to take a value without a terminal.
        try Self.write("#!/bin/sh\nexec cat >\"$1\"\n", to: home + "/editor", permissions: 0o700)
        try Self.write(
            "[user]\nname = device\nemail = device@localhost\n[init]\ndefaultBranch = main\n", to: home + "/gitconfig", permissions: 0o600)
        let environment = Peer.environment(
            home: home, ["GIT_CONFIG_GLOBAL": home + "/gitconfig", "GIT_CONFIG_NOSYSTEM": "1", "EDITOR": home + "/editor"])
        key = try Peer.attempt { try GnuPGKey(folder: home + "/gpg", environment: environment) }
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
        try Peer.attempt { try fill() }
    }

    private func fill() throws {
        let remote = isEncrypted ? "gcrypt::" + shared : shared
        try run("git", ["init", "--quiet", "--bare", shared])
        try run(program, ["init", GnuPGKey.user])
        try run(program, ["git", "init"])
        try encrypt(itemCount) {
            "initial-\($0)"
        } body: { folder in
            for group in 0...(itemCount - 1) / Self.groupSize {
                try FileManager.default.createDirectory(atPath: "\(store(.one))/group-\(group)", withIntermediateDirectories: false)
            }
            for index in 0..<itemCount {
                try FileManager.default.moveItem(atPath: "\(folder)/\(index).gpg", toPath: "\(store(.one))/\(Self.name(index)).gpg")
            }
        }
        try run(program, ["git", "add", "--all"])
        try run(program, ["git", "commit", "--quiet", "-m", "all entries"])
        try run(program, ["git", "remote", "add", "origin", remote])
        try run(program, ["git", "push", "--quiet", "-u", "origin", "main"])
        try run("git", ["clone", "--quiet", "--branch", "main", remote, store(.other)])
    }

    func set(_ key: Int, to value: String, on device: SyncDevice) throws {
        try run(program, ["insert", "-m", "-f", Self.name(key)], on: device, input: value)
    }

    func remove(_ key: Int, on device: SyncDevice) throws {
        // Without a terminal gopass reads the confirmation from standard input.
        program == "gopass"
            ? try run(program, ["rm", Self.name(key)], on: device, input: "y\n")
            : try run(program, ["rm", "-f", Self.name(key)], on: device)
    }

    func value(_ key: Int, on device: SyncDevice) throws -> String? {
        let output = try? make(program, ["show", Self.name(key)], on: device).output(timeoutSeconds: 60)
        return output.map { Self.text($0) }
    }

    /// The versions in the history of git.
    func otherValues(_ key: Int, on device: SyncDevice) throws -> [KeptValue] {
        let script = """
            cd "$1" && git log --format=%H -- "$2" | while read -r commit; do
                git show "$commit:$2" 2>/dev/null | gpg --quiet --batch --decrypt 2>/dev/null; echo
            done
            """
        let command = Command(
            "sh", ["-c", script, "sh", store(device), Self.name(key) + ".gpg"], environment: environment(device))
        return Self.text(try command.output(timeoutSeconds: 60)).split(separator: "\n").map { .version(String($0)) }
    }

    @discardableResult
    func send(from device: SyncDevice) throws -> Bool {
        try run(program, ["git", "push", "--quiet"], on: device)
        return false
    }

    /// Git refuses to combine two histories without being told how.
    @discardableResult
    func receive(on device: SyncDevice) throws -> Bool {
        try run(program, ["git", "pull", "--quiet", "--no-rebase", "--no-edit"], on: device)
        return false
    }

    @discardableResult
    func synchronize(_ device: SyncDevice) throws -> Bool {
        try receive(on: device)
        return try send(from: device)
    }

    /// `pass` exits with 0 also if git failed, so the repository is asked.
    func isWaitingForPerson(_ device: SyncDevice) throws -> Bool {
        try !make("git", ["-C", store(device), "ls-files", "--unmerged"], on: device).output(timeoutSeconds: 60).isEmpty
    }

    /// The pack that `git push` transfers.
    func byteCountToSend(from device: SyncDevice) throws -> Int? {
        if isEncrypted { return nil }
        let script = "printf 'HEAD\\n^origin/main\\n' | git -C \"$1\" pack-objects --revs --stdout --thin --delta-base-offset -q"
        return try Command("sh", ["-c", script, "sh", store(device)], environment: environment(device)).output(timeoutSeconds: 120).count
    }

    func clean() throws -> Bool {
        // What git-remote-gcrypt has pushed is opaque to git.
        if isEncrypted { return false }
        try run("git", ["-C", shared, "gc", "--quiet"])
        return true
    }

    /// Makes one commit per change, as the program does, but by a single process.
    func makeMissedChanges(_ count: Int) throws {
        var commits = Data()
        try encrypt(count) {
            "missed-\($0)"
        } body: { folder in
            for index in 0..<count {
                let secret = try Data(contentsOf: URL(filePath: "\(folder)/\(index).gpg"))
                let message = "Edit password"
                commits += Data("commit refs/heads/main\ncommitter device <device@localhost> \(1_790_000_000 + index) +0000\n".utf8)
                commits += Data("data \(message.utf8.count)\n\(message)\n".utf8)
                if index == 0 { commits += Data("from refs/heads/main^0\n".utf8) }
                commits +=
                    Data("M 100644 inline \(Self.name(index % itemCount)).gpg\ndata \(secret.count)\n".utf8) + secret + Data("\n".utf8)
            }
        }
        let file = home + "/commits"
        try commits.write(to: URL(filePath: file))
        let script = "cd \"$1\" && git fast-import --quiet <\"$2\" && git reset --quiet --hard"
        _ = try Command("sh", ["-c", script, "sh", store(.one), file], environment: environment(.one)).output(timeoutSeconds: 600)
        try send(from: .one)
    }

    func end() { key.end() }

    // MARK: Files and commands

    /// As people do, the entries are in folders.
    private static let groupSize = 100

    private static func name(_ key: Int) -> String { "group-\(key / groupSize)/\(FilledValet.key(key))" }

    private func store(_ device: SyncDevice) -> String { "\(state)/\(device)" }

    private func environment(_ device: SyncDevice) -> [String: String] {
        key.environment.merging(["PASSWORD_STORE_DIR": store(device)]) { _, new in new }
    }

    private func encrypt(_ count: Int, tag: (Int) -> String, body: (_ folder: String) throws -> Void) throws {
        let folder = home + "/plain"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        for index in 0..<count { try Data(SyncSecret.value(tag(index)).utf8).write(to: URL(filePath: "\(folder)/\(index)")) }
        try key.encryptFiles(in: folder, count: count)
        try body(folder)
        try FileManager.default.removeItem(atPath: folder)
    }

    private func make(_ program: String, _ arguments: [String], on device: SyncDevice = .one, input: String = "") -> Command {
        Command(program, arguments, environment: environment(device), input: input)
    }

    private func run(_ program: String, _ arguments: [String], on device: SyncDevice = .one, input: String = "") throws {
        _ = try make(program, arguments, on: device, input: input).output(timeoutSeconds: 600)
    }

    private static func text(_ data: Data) -> String {
        String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    private static func write(_ text: String, to path: String, permissions: Int) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
    }
}
