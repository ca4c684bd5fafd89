// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

/// A machine with two or more users, keychaind, keychain-peer, and three programs: one that its user could replace, one that root has installed, and one
/// with a group of its own.
final class Machine {
    static let alice: UInt32 = 61_401
    static let bob: UInt32 = 61_402
    static let daemon: UInt32 = 61_403
    static let inspector: UInt32 = 61_404
    static let group: UInt32 = 961
    /// Further users, of whom a machine may have as many as a test needs.
    static let others = Array(UInt32(61_411)...61_418)
    /// In a directory of root.
    static let installedProgram = "/mnt/installed"
    /// In the same directory; copies its input to its output.
    static let copyingProgram = "/mnt/copy"
    /// In the same directory; the group of the file can change it.
    static let changeableProgram = "/mnt/changeable"

    private let directory: TemporaryDirectory
    let process: ChildProcess
    let inspectorProcess: ChildProcess?
    /// The keychains that the users have handed over.
    private var storeIDs: [UInt32: StoreID] = [:]
    var socket: String { directory.path + "/run/socket" }
    var keychains: String { directory.path + "/keychains" }
    var registrations: String { directory.path + "/entitlements" }
    var plainProgram: String { directory.path + "/plain" }
    var programWithGroup: String { directory.path + "/grouped" }

    /// Without keychain-peer, no program is identified by its file.
    init(hasInspector: Bool = true, others: [UInt32] = []) throws {
        directory = try TemporaryDirectory()
        let path = directory.path
        let users = [Self.alice, Self.bob] + others
        // The programs are copied by other processes: a child that another test starts meanwhile would inherit a file that is open for writing,
        // and the system runs no such file.
        let setUp = """
            set -e
            chmod 755 "$1"
            install -d -o \(Self.daemon) -m 755 "$1/run"
            install -d -o \(Self.daemon) -m 700 "$1/keychains"
            for user in \(users.map(String.init).joined(separator: " ")); do
                install -d -o $user -m 700 "$1/home-$user"
                echo "user-$user:x:$user:$user::/nonexistent:/bin/sh" >> "$1/passwd"
                echo "user-$user:x:$user:" >> "$1/group"
            done
            install -d -m 755 "$1/entitlements"
            install -m 755 "$2" "$1/plain"
            install -m 2755 -g \(Self.group) "$2" "$1/grouped"
            install -m 755 "$3" "$1/keychaind"
            install -m 755 "$4" "$1/keychain-peer"
            install -m 755 "$5" "$1/keychain-agent"
            install -d -o \(Self.inspector) -g \(Self.daemon) -m 710 "$1/inspector"
            install -d -m 755 "$1/programs"
            install -m 755 "$2" "$1/programs/installed"
            install -m 755 /bin/cat "$1/programs/copy"
            install -m 775 "$2" "$1/programs/changeable"
            library=$(ldd "$2" | sed -n 's/.*=> \\(.*libm\\.so[^ ]*\\) .*/\\1/p')
            readlink -f "$library" > "$1/library"
            install -o \(Self.alice) -m 755 "$library" "$1/home-\(Self.alice)/library.so"
            echo 'root:x:0:0::/root:/bin/sh' >> "$1/passwd"
            for user in keychain:\(Self.daemon) keychain-peer:\(Self.inspector); do
                id=${user#*:}
                echo "${user%:*}:x:$id:$id::/nonexistent:/bin/sh" >> "$1/passwd"
                echo "${user%:*}:x:$id:" >> "$1/group"
            done
            echo 'kc-demo:x:\(Self.group):' >> "$1/group"
            printf '<plist><dict><key>keychain-access-groups</key><array><string>com.example.shared</string></array></dict></plist>' \
                > "$1/entitlements/kc-demo.entitlements"
            """
        try #require(
            try ChildProcess.run(
                "/bin/sh",
                [
                    "-c", setUp, "sh", path, BuiltProgram.path(of: "KeychainTestChild"), BuiltProgram.path(of: "keychaind"),
                    BuiltProgram.path(of: "keychain-peer"), BuiltProgram.path(of: "keychain-agent"),
                ],
                environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
            ).ending == .exited(0))
        let inspectorSocket = path + "/inspector/socket"
        inspectorProcess =
            try hasInspector
            ? ChildProcess(
                "/usr/bin/unshare",
                Self.namespace(path) + ["/usr/bin/setpriv"] + Self.identity(Self.inspector)
                    + ["--inh-caps=-all,+sys_ptrace", "--ambient-caps=-all,+sys_ptrace", "--bounding-set=-all,+sys_ptrace"] + [
                        path + "/keychain-peer", "--socket", inspectorSocket,
                    ]) : nil
        if hasInspector { try #require(waitUntil { FileManager.default.fileExists(atPath: inspectorSocket) }) }
        process = try ChildProcess(
            "/usr/bin/unshare",
            Self.namespace(path) + ["/usr/bin/setpriv"] + Self.identity(Self.daemon) + [
                path + "/keychaind", "--socket", path + "/run/socket", "--directory", path + "/keychains", "--entitlements",
                path + "/entitlements", "--peer-socket", inspectorSocket,
            ])
        try #require(waitUntil { FileManager.default.fileExists(atPath: path + "/run/socket") })
        for user in users {
            try #require(try handOver("adopt", as: user) == "moved 0")
            let signpost = FileManager.default.contents(atPath: home(of: user) + "/keychain.db").map(Array.init).flatMap(Signpost.init)
            storeIDs[user] = try #require(signpost).storeID
        }
    }

    /// A library of the system that the programs load.
    var library: String {
        String(decoding: FileManager.default.contents(atPath: directory.path + "/library") ?? Data(), as: UTF8.self)
            .trimmingCharacters(in: .newlines)
    }

    func home(of user: UInt32) -> String { "\(directory.path)/home-\(user)" }

    /// A file that root mounts for one process in the place of another one.
    struct Mount {
        let source: String
        let target: String
    }

    /// The options of unshare for a mount namespace with the machine's user database.
    private static func namespace(_ path: String, _ mount: Mount? = nil) -> [String] {
        var mounts = ["\(path)/passwd": "/etc/passwd", "\(path)/group": "/etc/group", "\(path)/programs": "/mnt"].map(Mount.init)
        if let mount { mounts.append(mount) }
        let script = mounts.map { "mount --bind '\($0.source)' '\($0.target)'" } + ["exec \"$@\""]
        return ["-m", "/bin/sh", "-c", script.joined(separator: " && "), "sh"]
    }

    private static func identity(_ user: UInt32) -> [String] { ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"] }

    func write(_ text: String, to path: String, owner: UInt32) throws {
        let script = "printf %s \"$1\" > \"$2\" && chown \(owner) \"$2\""
        try #require(try ChildProcess.run("/bin/sh", ["-c", script, "sh", text, path]).ending == .exited(0))
    }

    func changeOwner(of path: String, to owner: UInt32) throws {
        try #require(try ChildProcess.run("/bin/chown", ["\(owner)", path]).ending == .exited(0))
    }

    /// Runs a program that uses keychaind, and returns the line that it prints, of a failure the status alone.
    func run(
        _ program: [String], _ action: [String], declaring group: String = "declared", as user: UInt32 = alice, _ identities: [String] = [],
        _ mount: Mount? = nil
    ) throws -> String {
        let output = try execute(program + arguments(action, declaring: group, as: user), as: user, identities, mount).output
        let words = output.split(whereSeparator: \.isNewline).first?.split(separator: " ") ?? []
        return words.first == "failed" ? words.prefix(2).joined(separator: " ") : words.joined(separator: " ")
    }

    /// Starts a program that uses keychaind.
    func start(_ program: String, _ action: [String], as user: UInt32) throws -> ChildProcess {
        try start([program] + arguments(action, declaring: "declared", as: user), as: user)
    }

    private func arguments(_ action: [String], declaring group: String, as user: UInt32) throws -> [String] {
        ["use-daemon", socket, try #require(storeIDs[user]).hexadecimal, group] + action
    }

    /// Hands a keychain over, and returns the line that the program prints, of a failure the status alone.
    func handOver(_ direction: String, as user: UInt32) throws -> String {
        let output = try execute([plainProgram, "hand-over", home(of: user), socket, direction, "none"], as: user).output
        let words = output.split(whereSeparator: \.isNewline).first?.split(separator: " ") ?? []
        return words.prefix(2).joined(separator: " ")
    }

    /// An agent of a user's session, whose pinentry program carries out a script and logs its requests.
    final class SessionAgent {
        fileprivate let process: ChildProcess
        private let path: String

        fileprivate init(_ process: ChildProcess, _ path: String) {
            self.process = process
            self.path = path
        }

        /// What the person was asked.
        var log: String { FileManager.default.contents(atPath: path + ".log").map { String(decoding: $0, as: UTF8.self) } ?? "" }
    }

    func startAgent(of user: UInt32, _ steps: [String]) throws -> SessionAgent {
        let pinentry = home(of: user) + "/pinentry-\(UInt32.random(in: 0...999_999))"
        try FileManager.default.createSymbolicLink(atPath: pinentry, withDestinationPath: plainProgram)
        try write(steps.joined(separator: "\n"), to: pinentry + ".script", owner: user)
        let process = try start(
            ["/usr/bin/env", "KEYCHAIN_PINENTRY=\(pinentry)", "DISPLAY=:nowhere", directory.path + "/keychain-agent", "--socket", socket],
            as: user)
        try #require(try process.readLine() == "ready")
        return SessionAgent(process, pinentry)
    }

    func start(_ command: [String], as user: UInt32) throws -> ChildProcess {
        try ChildProcess(
            "/usr/bin/unshare", Self.namespace(directory.path) + ["/usr/bin/setpriv"] + Self.identity(user) + command)
    }

    func execute(
        _ command: [String], as user: UInt32, _ identities: [String] = [], _ mount: Mount? = nil
    ) throws -> (ending: ChildProcess.Ending, output: String) {
        let options = identities.isEmpty ? Self.identity(user) : ["--reuid=\(user)"] + identities
        let isGroupGiven = options.contains { $0.hasPrefix("--regid") || $0.hasPrefix("--rgid") }
        return try ChildProcess.run(
            "/usr/bin/unshare",
            Self.namespace(directory.path, mount) + ["/usr/bin/setpriv"] + options + (isGroupGiven ? [] : ["--regid=\(user)"]) + command)
    }
}
