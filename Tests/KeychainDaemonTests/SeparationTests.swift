// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport
import Testing

/// Who sees what: keychaind as a user of its own, programs of two users, and a program with a group of its own.
///
/// Everything runs in one mount namespace with a user database of its own.
@Suite("keychaind separates programs", .blocking, .requiresSetuidPrograms)
struct SeparationTests {
    @Test("A program with a group of its own is identified, and other programs of the user are not", arguments: Attempt.all)
    func identity(_ attempt: Attempt) throws {
        let machine = try Machine()
        let program = attempt.isProgramWithGroup ? machine.programWithGroup : machine.plainProgram
        let identity = try machine.run(attempt.wrapper + [program], ["identity"], as: Machine.alice, attempt.identities)
        #expect(identity == (attempt.isIdentified ? "level 3 com.example.shared group:kc-demo" : "level 0 declared any"))
    }

    @Test("A secret of a program with a group of its own is absent for other programs, and theirs for it")
    func items() throws {
        let machine = try Machine()
        #expect(try machine.run([machine.programWithGroup], ["set", "token", "hers"]) == "stored")
        #expect(try machine.run([machine.programWithGroup], ["get", "token"]) == "found hers")
        #expect(try machine.run([machine.plainProgram], ["get", "token"]) == "failed -25300")
        #expect(try machine.run([machine.plainProgram], ["set", "note", "his"]) == "stored")
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "found his")
        #expect(try machine.run([machine.programWithGroup], ["get", "note"]) == "failed -25300")
    }

    @Test(
        "A program that names a group of another one is not entitled to it, to write or to read",
        arguments: ["com.example.shared", "group:kc-demo", "program:/usr/bin/gh"])
    func foreignGroup(group: String) throws {
        let machine = try Machine()
        #expect(try machine.run([machine.programWithGroup], ["set", "token", "hers"]) == "stored")
        #expect(try machine.run([machine.plainProgram], ["add", group], declaring: group) == "failed -34018")
        #expect(try machine.run([machine.plainProgram], ["find", group], declaring: group) == "failed -34018")
    }

    @Test("Each user has a keychain of their own, which neither the other user nor they themselves can read as files")
    func users() throws {
        let machine = try Machine()
        #expect(try machine.run([machine.plainProgram], ["set", "note", "his"]) == "stored")
        #expect(try machine.run([machine.plainProgram], ["get", "note"], as: Machine.bob) == "failed -25300")
        for user in [Machine.alice, Machine.bob] {
            #expect(try machine.execute(["/bin/ls", machine.keychains], as: user).ending != .exited(0))
        }
        #expect(try machine.execute(["/bin/ls", "\(machine.keychains)/\(Machine.alice)"], as: Machine.daemon).ending == .exited(0))
    }

    @Test("A program of the user can have the keychain adopted, and only root can take it back")
    func handover() throws {
        let machine = try Machine()
        #expect(try machine.handOver("adopt", as: Machine.alice) == "failed -25291")
        #expect(try machine.run([machine.plainProgram], ["set", "note", "his"]) == "stored")
        #expect(try machine.handOver("release", as: Machine.alice) == "failed -34018")
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "found his")
    }

    @Test("No program is served while a registration cannot be read, or is not root's")
    func unreadableRegistration() throws {
        let machine = try Machine()
        try machine.write("<plist><dict></plist>", to: machine.registrations + "/broken.entitlements", owner: 0)
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "failed -34018")
        try machine.write("<plist><dict/></plist>", to: machine.registrations + "/broken.entitlements", owner: Machine.alice)
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "failed -34018")
        try machine.write("<plist><dict/></plist>", to: machine.registrations + "/broken.entitlements", owner: 0)
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "failed -25300")
        // Another user could remove a file from such a directory.
        try machine.changeOwner(of: machine.registrations, to: Machine.alice)
        #expect(try machine.run([machine.plainProgram], ["get", "note"]) == "failed -25291")
    }

    /// A way to start a program.
    struct Attempt: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let isProgramWithGroup: Bool
        let isIdentified: Bool
        /// Options of setpriv: the groups with which the program is started.
        let identities: [String]
        let wrapper: [String]

        init(_ name: String, isProgramWithGroup: Bool, isIdentified: Bool, _ identities: [String] = [], wrapper: [String] = []) {
            testDescription = name
            self.isProgramWithGroup = isProgramWithGroup
            self.isIdentified = isIdentified
            self.identities = identities
            self.wrapper = wrapper
        }

        static let all = [
            Attempt("a program with a group of its own", isProgramWithGroup: true, isIdentified: true),
            Attempt("a plain program", isProgramWithGroup: false, isIdentified: false),
            Attempt(
                "a plain program of a user who is a member of the group", isProgramWithGroup: false, isIdentified: false,
                ["--groups=\(Machine.group)"]),
            Attempt(
                "a plain program that was started with the group", isProgramWithGroup: false, isIdentified: false,
                ["--regid=\(Machine.group)", "--clear-groups"]),
            Attempt(
                "a plain program with the group as its effective group and as a supplementary one", isProgramWithGroup: false,
                isIdentified: false, ["--rgid=\(Machine.alice)", "--egid=\(Machine.group)", "--groups=\(Machine.group)"]),
            Attempt(
                "the program with the group, without new privileges", isProgramWithGroup: true, isIdentified: false,
                ["--regid=\(Machine.alice)", "--clear-groups", "--no-new-privs"]),
            Attempt(
                "the program with the group, in a user namespace", isProgramWithGroup: true, isIdentified: false,
                wrapper: ["/usr/bin/unshare", "-Ur"]),
            Attempt(
                "the program with the group, through the dynamic linker", isProgramWithGroup: true, isIdentified: false,
                wrapper: ["/lib64/ld-linux-x86-64.so.2"]),
        ]
    }
}

/// A machine with two users, keychaind, and two programs, of which one has a group of its own.
private final class Machine {
    static let alice: UInt32 = 61_401
    static let bob: UInt32 = 61_402
    static let daemon: UInt32 = 61_403
    static let group: UInt32 = 961

    private let directory: TemporaryDirectory
    private let process: ChildProcess
    /// The keychains that the users have handed over.
    private var storeIDs: [UInt32: StoreID] = [:]
    private var socket: String { directory.path + "/run/socket" }
    var keychains: String { directory.path + "/keychains" }
    var registrations: String { directory.path + "/entitlements" }
    var plainProgram: String { directory.path + "/plain" }
    var programWithGroup: String { directory.path + "/grouped" }

    init() throws {
        directory = try TemporaryDirectory()
        let path = directory.path
        // The programs are copied by other processes: a child that another test starts meanwhile would inherit a file that is open for writing,
        // and the system runs no such file.
        let setUp = """
            set -e
            chmod 755 "$1"
            install -d -o \(Self.daemon) -m 755 "$1/run"
            install -d -o \(Self.daemon) -m 700 "$1/keychains"
            install -d -o \(Self.alice) -m 700 "$1/home-\(Self.alice)"
            install -d -o \(Self.bob) -m 700 "$1/home-\(Self.bob)"
            install -d -m 755 "$1/entitlements"
            install -m 755 "$2" "$1/plain"
            install -m 2755 -g \(Self.group) "$2" "$1/grouped"
            install -m 755 "$3" "$1/keychaind"
            echo 'root:x:0:0::/root:/bin/sh' > "$1/passwd"
            for user in alice:\(Self.alice) bob:\(Self.bob) keychain:\(Self.daemon); do
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
                ["-c", setUp, "sh", path, BuiltProgram.path(of: "KeychainTestChild"), BuiltProgram.path(of: "keychaind")],
                environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
            ).ending == .exited(0))
        process = try ChildProcess(
            "/usr/bin/unshare",
            Self.namespace(path) + ["/usr/bin/setpriv"] + Self.identity(Self.daemon) + [
                path + "/keychaind", "--socket", path + "/run/socket", "--directory", path + "/keychains", "--entitlements",
                path + "/entitlements",
            ])
        try #require(waitUntil { FileManager.default.fileExists(atPath: path + "/run/socket") })
        for user in [Self.alice, Self.bob] {
            try #require(try handOver("adopt", as: user) == "moved 0")
            let signpost = FileManager.default.contents(atPath: home(of: user) + "/keychain.db").map(Array.init).flatMap(Signpost.init)
            storeIDs[user] = try #require(signpost).storeID
        }
    }

    private func home(of user: UInt32) -> String { "\(directory.path)/home-\(user)" }

    /// The options of unshare for a mount namespace with the machine's user database.
    private static func namespace(_ path: String) -> [String] {
        [
            "-m", "/bin/sh", "-c",
            "mount --bind '\(path)/passwd' /etc/passwd && mount --bind '\(path)/group' /etc/group && exec \"$@\"", "sh",
        ]
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
        _ program: [String], _ action: [String], declaring group: String = "declared", as user: UInt32 = alice, _ identities: [String] = []
    ) throws -> String {
        let storeID = try #require(storeIDs[user]).hexadecimal
        let output = try execute(program + ["use-daemon", socket, storeID, group] + action, as: user, identities).output
        let words = output.split(whereSeparator: \.isNewline).first?.split(separator: " ") ?? []
        return words.first == "failed" ? words.prefix(2).joined(separator: " ") : words.joined(separator: " ")
    }

    /// Hands a keychain over, and returns the line that the program prints, of a failure the status alone.
    func handOver(_ direction: String, as user: UInt32) throws -> String {
        let output = try execute([plainProgram, "hand-over", home(of: user), socket, direction, "none"], as: user).output
        let words = output.split(whereSeparator: \.isNewline).first?.split(separator: " ") ?? []
        return words.prefix(2).joined(separator: " ")
    }

    func execute(
        _ command: [String], as user: UInt32, _ identities: [String] = []
    ) throws -> (ending: ChildProcess.Ending, output: String) {
        let options = identities.isEmpty ? Self.identity(user) : ["--reuid=\(user)"] + identities
        let isGroupGiven = options.contains { $0.hasPrefix("--regid") || $0.hasPrefix("--rgid") }
        return try ChildProcess.run(
            "/usr/bin/unshare",
            Self.namespace(directory.path) + ["/usr/bin/setpriv"] + options + (isGroupGiven ? [] : ["--regid=\(user)"]) + command)
    }
}
