// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainSystem
import KeychainTestSupport
import Testing

/// The attacks on the identity of a program whose file only root can change, each with the expected level.
@Suite("keychaind knows a program by its file", .blocking, .requiresSetuidPrograms)
struct VerifiedProgramTests {
    private static let own = "program:\(Machine.installedProgram)"
    private static let identified = "level 1 declared any \(own)"
    private static let unidentified = "level 0 declared any"

    @Test("A program that root has installed is identified, and only where it is what it seems to be", arguments: Attempt.all)
    func identity(_ attempt: Attempt) throws {
        let machine = try Machine()
        #expect(
            try machine.run(attempt.command(machine), ["identity"], attempt.identities)
                == (attempt.isIdentified ? Self.identified : Self.unidentified))
    }

    @Test("A program that copies its input to its output lends its identity to no program that executes it on a connection")
    func relay() throws {
        let machine = try Machine()
        // So that the program is executed before keychaind looks at the process.
        machine.process.send(signal: SIGSTOP)
        let script = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Relay/relay.py"), encoding: .utf8)
        let relay = try machine.start(["/usr/bin/python3", "-c", script, machine.socket, Machine.copyingProgram], as: Machine.alice)
        let executed = "/proc/\(relay.processID)/exe"
        #expect(waitUntil { (try? FileManager.default.destinationOfSymbolicLink(atPath: executed)) == Machine.copyingProgram })
        machine.process.send(signal: SIGCONT)
        let line = try relay.readLine()
        #expect(line == "refused")
    }

    @Test("A program that is traced is not identified", .requiresStrace)
    func traced() throws {
        let machine = try Machine()
        let strace = ["/usr/bin/strace", "-f", "-o", "/dev/null", Machine.installedProgram]
        #expect(try machine.run(strace, ["identity"]) == Self.unidentified)
    }

    @Test("A program for which a file of root, or a library of its user, is mounted in the place of another file is not identified")
    func mounted() throws {
        let machine = try Machine()
        for mount in [
            Machine.Mount(source: machine.plainProgram, target: Machine.installedProgram),
            Machine.Mount(source: machine.home(of: Machine.alice) + "/library.so", target: machine.library),
        ] {
            #expect(try machine.run([Machine.installedProgram], ["identity"], [], mount) == Self.unidentified)
        }
    }

    @Test("Without keychain-peer no program is identified by its file, and the others are served as before")
    func withoutInspector() throws {
        let machine = try Machine(hasInspector: false)
        #expect(try machine.run([Machine.installedProgram], ["identity"]) == Self.unidentified)
        #expect(try machine.run([machine.programWithGroup], ["identity"]) == "level 3 com.example.shared group:kc-demo")
        // What such a program has in its own group is not reported as absent.
        #expect(try machine.run([Machine.installedProgram], ["get", "token"], declaring: Self.own) == "failed -25291")
        // A process of which nothing is known is not one that nothing tells from others.
        let copying = try machine.start([Machine.copyingProgram], as: Machine.alice)
        #expect(try machine.run([machine.plainProgram], ["identify", "\(copying.processID)"]) == "failed -25291")
    }

    @Test("Once keychain-peer has ended no program is identified by its file, and the others are served as before")
    func endedInspector() throws {
        let machine = try Machine()
        let inspector = try #require(machine.inspectorProcess)
        inspector.send(signal: SIGKILL)
        _ = try inspector.waitUntilEnded()
        #expect(try machine.run([Machine.installedProgram], ["identity"]) == Self.unidentified)
        #expect(try machine.run([machine.plainProgram], ["set", "note", "his"]) == "stored")
    }

    @Test("While keychain-peer does not answer no program is identified by its file, and the others are served as before")
    func stoppedInspector() throws {
        let machine = try Machine()
        let inspector = try #require(machine.inspectorProcess)
        inspector.send(signal: SIGSTOP)
        #expect(try machine.run([Machine.installedProgram], ["identity"]) == Self.unidentified)
        inspector.send(signal: SIGCONT)
        #expect(try machine.run([Machine.installedProgram], ["identity"]) == Self.identified)
    }

    @Test("A program learns which program another process of its user executes, and nothing of other processes")
    func otherProcesses() throws {
        let machine = try Machine()
        func identity(of process: Int32, _ user: UInt32 = Machine.alice) throws -> String {
            try machine.run([machine.plainProgram], ["identify", "\(process)"], as: user)
        }
        let copying = try machine.start([Machine.copyingProgram], as: Machine.alice)
        #expect(try waitUntil { try identity(of: copying.processID) == "program:\(Machine.copyingProgram)" })
        #expect(try identity(of: copying.processID, Machine.bob) == "failed -34018")
        #expect(try identity(of: machine.process.processID) == "failed -34018")
        let plain = try machine.start(["/usr/bin/python3", "-c", "input()"], as: Machine.alice)
        #expect(try waitUntil { try identity(of: plain.processID) == "unidentified" })
        copying.closeInput()
        _ = try copying.waitUntilEnded()
        for process in [copying.processID, 0] { #expect(try identity(of: process) == "failed -25300") }
    }

    @Test("What a program stores in its own group is absent for the other programs of its user")
    func ownGroup() throws {
        let machine = try Machine()
        #expect(try machine.run([Machine.installedProgram], ["set", "token", "hers"], declaring: Self.own) == "stored")
        #expect(try machine.run([Machine.installedProgram], ["get", "token"], declaring: Self.own) == "found hers")
        #expect(try machine.run([Machine.installedProgram], ["get", "token"]) == "found hers")
        #expect(try machine.run([machine.plainProgram], ["get", "token"]) == "failed -25300")
        #expect(try machine.run([machine.programWithGroup], ["get", "token"]) == "failed -25300")
        for action in ["add", "find"] {
            #expect(try machine.run([machine.plainProgram], [action, Self.own]) == "failed -34018")
            #expect(try machine.run([machine.plainProgram], [action, Self.own], declaring: Self.own) == "failed -34018")
        }
    }

    @Test("Programs that root has registered by their paths have a group that other programs of the user find nothing in")
    func registeredByPath() throws {
        let machine = try Machine()
        func register(_ paths: [String], as name: String = "deployment") throws {
            let list = paths.map { "<string>\($0)</string>" }.joined()
            try machine.write(
                "<plist><dict><key>keychain-programs</key><array>\(list)</array></dict></plist>",
                to: "\(machine.registrations)/\(name).entitlements", owner: 0)
        }
        let group = "group:deployment"
        try register(["/usr/bin/other", Machine.installedProgram])
        #expect(try machine.run([Machine.installedProgram], ["set", "token", "hers"], declaring: group) == "stored")
        #expect(try machine.run([Machine.installedProgram], ["get", "token"]) == "found hers")
        #expect(try machine.run([machine.plainProgram], ["get", "token"]) == "failed -25300")
        #expect(try machine.run([machine.programWithGroup], ["get", "token"]) == "failed -25300")
        for action in ["add", "find"] {
            #expect(try machine.run([machine.plainProgram], [action, group]) == "failed -34018")
            #expect(try machine.run([machine.plainProgram], [action, group], declaring: group) == "failed -34018")
        }
        try register(["/usr/bin/other"])
        #expect(try machine.run([Machine.installedProgram], ["get", "token"]) == "failed -25300")
        // No program is served with a path that is none, or that two files register.
        try register(["usr/bin/other"])
        #expect(try machine.run([machine.plainProgram], ["get", "token"]) == "failed -34018")
        try register([Machine.installedProgram])
        try register([Machine.installedProgram], as: "other")
        #expect(try machine.run([machine.plainProgram], ["get", "token"]) == "failed -34018")
    }

    @Test("A program finds what it has stored before it was identified, and stores its new items in the same group")
    func earlierItems() throws {
        let machine = try Machine()
        #expect(try machine.run([machine.plainProgram], ["set", "note", "earlier"]) == "stored")
        #expect(try machine.run([Machine.installedProgram], ["get", "note"]) == "found earlier")
        #expect(try machine.run([Machine.installedProgram], ["set", "note", "again"]) == "failed -25299")
        #expect(try machine.run([Machine.installedProgram], ["set", "other", "later"]) == "stored")
        #expect(try machine.run([machine.plainProgram], ["get", "other"]) == "found later")
    }

    @Test("A process that executes another program between its connection and its first message does not get that program's identity")
    func execution() throws {
        let machine = try Machine()
        func connecting(_ first: String, executing second: String) throws -> String {
            // Each execution of one program has its memory at the same addresses.
            let setarch = ["/usr/bin/setarch", "-R"]
            return try machine.execute(setarch + [first, "execute-after-connecting", machine.socket, second], as: Machine.alice).output
        }
        #expect(try connecting(machine.plainProgram, executing: Machine.installedProgram) == "level 0 any\n")
        #expect(try connecting(Machine.installedProgram, executing: machine.plainProgram) == "closed\n")
        #expect(try connecting(Machine.installedProgram, executing: Machine.installedProgram) == "closed\n")
    }

    @Test("keychain-peer has one capability, and has limited itself")
    func privileges() throws {
        let machine = try Machine()
        let inspector = try #require(machine.inspectorProcess)
        let status = try String(contentsOfFile: "/proc/\(inspector.processID)/status", encoding: .utf8)
        func field(_ name: String) -> String? {
            status.split(separator: "\n").first { $0.hasPrefix("\(name):") }?.split(whereSeparator: \.isWhitespace).last.map(String.init)
        }
        // CAP_SYS_PTRACE is the 19th.
        for capabilities in ["CapEff", "CapPrm", "CapBnd"] { #expect(field(capabilities) == "0000000000080000") }
        #expect(field("NoNewPrivs") == "1")
        #expect(field("Seccomp") == "2")
    }

    @Test("A process that has limited itself to inspection can neither trace, nor execute, nor connect, nor write")
    func confinement() throws {
        let output = try ChildProcess.run(try BuiltProgram.path(of: "KeychainTestChild"), ["confined"]).output
        #expect(output == "possible before 1023 after 0\n")
    }

    /// A way to start a program.
    struct Attempt: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let isIdentified: Bool
        /// Options of setpriv.
        let identities: [String]
        let command: @Sendable (Machine) -> [String]

        init(
            _ name: String, isIdentified: Bool, _ identities: [String] = [],
            command: @escaping @Sendable (Machine) -> [String] = { _ in
                [Machine.installedProgram]
            }
        ) {
            testDescription = name
            self.isIdentified = isIdentified
            self.identities = identities
            self.command = command
        }

        static let all = [
            Attempt("the program", isIdentified: true),
            Attempt(
                "the program, without new privileges", isIdentified: true, ["--regid=\(Machine.alice)", "--clear-groups", "--no-new-privs"]),
            Attempt("a program in a directory that others can change", isIdentified: false) { [$0.plainProgram] },
            Attempt("a program whose file others can change", isIdentified: false) { _ in [Machine.changeableProgram] },
            Attempt("the program, in a user namespace", isIdentified: false) { _ in ["/usr/bin/unshare", "-Ur", Machine.installedProgram] },
            Attempt("another program that is mounted in its place", isIdentified: false) { machine in
                let script = "mount --bind \"$1\" \(Machine.installedProgram) && shift && exec \(Machine.installedProgram) \"$@\""
                return ["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", script, "sh", machine.plainProgram]
            },
            Attempt("the program, through the dynamic linker", isIdentified: false) { _ in
                ["/lib64/ld-linux-x86-64.so.2", Machine.installedProgram]
            },
            Attempt("the program, with a library of its user", isIdentified: false) { machine in
                ["/usr/bin/env", "LD_PRELOAD=\(machine.home(of: Machine.alice))/library.so", Machine.installedProgram]
            },
            Attempt("the program, with a library of the system from a directory of its user", isIdentified: false) { machine in
                let script = "cp \"$0/library.so\" \"$0/libm.so.6\" && LD_LIBRARY_PATH=\"$0\" exec \(Machine.installedProgram) \"$@\""
                return ["/bin/sh", "-c", script, machine.home(of: Machine.alice)]
            },
        ]
    }
}

@Suite("A handle of a process")
struct ProcessHandleTests {
    @Test("A handle stands for its process until that has ended, and for no other one afterwards")
    func ended() throws {
        let process = try ChildProcess("/bin/sleep", ["600"])
        let handle = try ProcessHandle(ofProcess: process.processID)
        #expect(!handle.hasEnded)
        #expect(handle.processID == process.processID)
        process.send(signal: SIGKILL)
        _ = try process.waitUntilEnded()
        #expect(handle.hasEnded)
        #expect(handle.processID == nil)
    }
}
