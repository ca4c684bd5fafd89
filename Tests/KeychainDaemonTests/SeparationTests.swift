// SPDX-License-Identifier: Apache-2.0
import Contracts
import Glibc
import KeychainCore
import KeychainTestSupport
import Testing

/// Who sees what: keychaind as a user of its own, programs of two users, and a program with a group of its own.
///
/// Everything runs in one mount namespace with a user database of its own.
@Suite("keychaind separates programs", .blocking, .requiresSetuidPrograms)
struct SeparationTests {
    @Test(
        "A program with a group of its own is identified, and other programs of the user are not", .requiresStrace, arguments: Attempt.all)
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

    @Test("An agent shows the prompts of its own user only, and names the program as keychaind knows it")
    func agents() throws {
        let machine = try Machine()
        let script = ["say OK", "until GETPIN", "say S PIN_REPEATED", "say D swordfish", "say OK"]
        let foreign = try machine.startAgent(of: Machine.bob, script)
        #expect(try machine.run([machine.programWithGroup], ["protect", "token", "hers"]) == "failed -25308")
        #expect(foreign.log == "")
        let agent = try machine.startAgent(of: Machine.alice, script)
        #expect(try machine.run([machine.programWithGroup], ["protect", "token", "hers"]) == "stored")
        #expect(agent.log.contains("The program of the group kc-demo (process "), "\(agent.log)")
        #expect(try machine.run([Machine.installedProgram], ["protect", "note", "his"]) == "stored")
        #expect(agent.log.contains("\(Machine.installedProgram) (process "), "\(agent.log)")
        #expect(foreign.log == "")
    }

    @Test("Programs of eight users work while those of another one take all that they get")
    func flood() throws {
        let machine = try Machine(hasInspector: false, others: Machine.others)
        let floods = try (0..<3).map { _ in try machine.start(machine.plainProgram, ["flood"], as: Machine.alice) }
        for flood in floods { try #require(try flood.readLine() == "refused") }
        let programs = try Machine.others.map { try machine.start(machine.plainProgram, ["work"], as: $0) }
        for program in programs { #expect(try program.readLine() == "worked") }
        for flood in floods {
            flood.send(signal: SIGKILL)
            #expect(try flood.waitUntilEnded() == .killed(bySignal: SIGKILL))
        }
        #expect(waitUntil { (try? machine.run([machine.plainProgram], ["work"])) == "worked" })
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
                "the program with the group, traced from its start", isProgramWithGroup: true, isIdentified: false,
                wrapper: ["/usr/bin/strace", "-o", "/dev/null", "-f"]),
            // The dynamic linker ignores the variable, so no code of the user runs with the group.
            Attempt(
                "the program with the group, with a library to load before its own", isProgramWithGroup: true, isIdentified: true,
                wrapper: ["/usr/bin/env", "LD_PRELOAD=/nowhere/library.so"]),
            Attempt(
                "the program with the group, through the dynamic linker", isProgramWithGroup: true, isIdentified: false,
                wrapper: ["/lib64/ld-linux-x86-64.so.2"]),
        ]
    }
}
