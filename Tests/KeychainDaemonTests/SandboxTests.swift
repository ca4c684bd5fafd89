// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainPeers
import KeychainTestSupport
import Testing

@Suite("The sandbox of an application")
struct SandboxTests {
    @Test("Flatpak names the application in the file /.flatpak-info")
    func flatpak() {
        let text = "[Application]\nname=org.example.App\nruntime=runtime/org.example.Platform/x86_64/1\n\n[Instance]\nname=other\n"
        #expect(Sandbox(flatpakInformation: Array(text.utf8)) == .flatpak(applicationID: "org.example.App"))
        #expect(Sandbox.flatpak(applicationID: "org.example.App").accessGroup == "flatpak:org.example.App")
    }

    @Test(
        "A file that does not name one application is that of a sandbox without a name",
        arguments: [
            "", "[Application]\n", "name=org.example.App\n", "[Application]\nname=\n", "[Application]\nname=app\n",
            "[Application]\nname=org.example.App\nname=org.example.Other\n", "[Application]\nname=org..App\n",
            "[Application]\nname=org.example.App \n", "[Application]\nname=org.ex\u{E4}mple.App\n", "[Runtime]\nname=org.example.App\n",
            "[Application]\nname=a.\(String(repeating: "b", count: 254))\n",
        ])
    func unnamed(text: String) {
        #expect(Sandbox(flatpakInformation: Array(text.utf8)) == .unnamed)
        #expect(Sandbox.unnamed.accessGroup == nil)
    }

    @Test(
        "The control group of a snap names it",
        arguments: [
            ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/snap.example.app-4a1.scope\n", "snap:example"),
            ("0::/user.slice/snap.example_two.app.4a1.scope\n", "snap:example_two"),
            ("1:name=systemd:/x\n0::/system.slice/snap.example.daemon.service\n", "snap:example"),
        ])
    func snap(text: String, group: String) {
        #expect(Sandbox(controlGroups: Array(text.utf8))?.accessGroup == group)
    }

    @Test(
        "Other control groups are no sandbox",
        arguments: [
            "", "0::/\n", "0::/user.slice/app-org.example.scope\n", "0::/snap.example.app-1.scope/inner.scope\n", "0::/snap.example\n",
        ])
    func noSnap(text: String) {
        #expect(Sandbox(controlGroups: Array(text.utf8)) == nil)
    }

    @Test("A program gets no group if its control group is that of a sandbox, and it is not known whether it is in one")
    func byControlGroup() {
        let flatpak = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-flatpak-org.example.App-4711.scope\n"
        let snap = "0::/user.slice/snap.example.app-4a1.scope\n"
        var (outside, inside) = (ProgramFacts(), ProgramFacts())
        (outside.isOutsideOfContainers, inside.isOutsideOfContainers) = (true, false)
        // Nil: keychain-peer does not answer. Without facts: the program has executed another one while keychain-peer looked at it.
        for (text, program, isSandboxed) in [
            (flatpak, nil, true), (flatpak, ProgramFacts(), true), (flatpak, outside, false), (flatpak, inside, true), (snap, nil, false),
            (snap, ProgramFacts(), true),
            (snap, outside, false), ("0::/user.slice/app-org.example.scope\n", ProgramFacts(), false), ("", ProgramFacts(), false),
        ] as [(String, ProgramFacts?, Bool)] {
            var facts = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
            facts.controlGroupSandbox = Sandbox.byControlGroups(Array(text.utf8))
            facts.program = program
            let identity = PeerIdentity(facts, registrations: ProgramRegistrations())
            #expect(identity == (isSandboxed ? .sandboxed(.unnamed) : .anyProgram), "\(text)")
            facts.program = Self.facts(nil)
            #expect(PeerIdentity(facts, registrations: ProgramRegistrations()) == .program("/usr/bin/deploy"))
        }
    }

    private static func facts(_ sandbox: Sandbox?) -> ProgramFacts {
        var facts = ProgramFacts.verified
        facts.sandbox = sandbox
        return facts
    }

    @Test("A program in a sandbox has the group of its application, whatever it declares and whichever file it is")
    func groups() {
        for (sandbox, groups) in [
            (Sandbox.flatpak(applicationID: "org.example.App"), ["flatpak:org.example.App"]), (.snap(name: "example"), ["snap:example"]),
            (.unnamed, []),
        ] {
            var facts = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
            facts.program = Self.facts(sandbox)
            let identity = PeerIdentity(facts, registrations: ProgramRegistrations())
            #expect(identity == .sandboxed(sandbox))
            let declared = Entitlements(applicationIdentifier: "app", keychainAccessGroups: ["shared", "flatpak:org.example.Other"])
            #expect(identity.entitlements(declared: declared, registrations: ProgramRegistrations()).accessGroups == groups)
        }
    }

    @Test("Its facts arrive as they were sent, and no other bytes are accepted for them")
    func encoding() throws {
        for sandbox: Sandbox? in [
            nil, .unnamed, .snap(name: "example"), .flatpak(applicationID: "a." + String(repeating: "b", count: 253)),
        ] {
            let facts = Self.facts(sandbox)
            #expect(ProgramFacts(decoding: facts.encoded) == facts)
        }
        let bytes = Self.facts(.snap(name: "example")).encoded
        for bit in 0..<(bytes.count * 8) {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << (bit % 8)
            guard let decoded = ProgramFacts(decoding: flipped) else { continue }
            #expect(decoded.encoded == flipped)
        }
    }
}

/// Programs in a sandbox as Flatpak makes it.
@Suite("keychaind knows a program by its sandbox", .blocking, .requiresSetuidPrograms, .requiresSandbox)
struct SandboxedProgramTests {
    private static func sandbox(_ machine: Machine, _ application: String) throws -> [String] {
        let information = "\(machine.home(of: Machine.alice))/\(application)"
        try machine.write("[Application]\nname=\(application)\n", to: information, owner: Machine.alice)
        let directories = ["bin", "etc", "lib", "lib64", "mnt", "opt", "root", "run", "tmp", "usr", "work"]
        return ["/usr/bin/bwrap", "--unshare-user", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
            + directories.flatMap { ["--ro-bind-try", "/\($0)", "/\($0)"] } + ["--ro-bind", information, "/.flatpak-info", "--"]
    }

    @Test("Each application has secrets of its own, and those of programs outside are absent for it")
    func items() throws {
        let machine = try Machine()
        let (one, other) = (try Self.sandbox(machine, "org.example.One"), try Self.sandbox(machine, "org.example.Other"))
        for program in [machine.plainProgram, Machine.installedProgram, machine.programWithGroup] {
            #expect(try machine.run(one + [program], ["identity"]) == "level 2 flatpak:org.example.One")
        }
        #expect(try machine.run([machine.plainProgram], ["set", "note", "outside"]) == "stored")
        #expect(try machine.run(one + [machine.plainProgram], ["get", "note"]) == "failed -25300")
        #expect(try machine.run(one + [machine.plainProgram], ["set", "token", "inside"]) == "stored")
        #expect(try machine.run(one + [machine.plainProgram], ["get", "token"]) == "found inside")
        for program in [other + [machine.plainProgram], [machine.plainProgram], [machine.programWithGroup]] {
            #expect(try machine.run(program, ["get", "token"]) == "failed -25300")
        }
        #expect(try machine.run(one + [machine.plainProgram], ["find", "flatpak:org.example.Other"]) == "failed -34018")
        #expect(try machine.run(one + [machine.plainProgram], ["add", "declared"]) == "failed -34018")
    }

    @Test("A sandbox that names no application gets no group")
    func unnamed() throws {
        let machine = try Machine()
        #expect(try machine.run(try Self.sandbox(machine, "none") + [machine.plainProgram], ["identity"]) == "level 0")
        #expect(try machine.run(try Self.sandbox(machine, "none") + [machine.plainProgram], ["set", "a", "1"]) == "failed -34018")
    }
}
