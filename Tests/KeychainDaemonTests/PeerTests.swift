// SPDX-License-Identifier: Apache-2.0
import Glibc
import KeychainCore
import KeychainPeers
import KeychainSystem
import Testing

@Suite("Who a program is, from what the kernel says about it")
struct PeerTests {
    /// A setgid program, started by an ordinary user.
    private static let setgid = PeerFacts(
        userID: 1_001, effectiveGroupID: 990, realGroupID: 1_001, supplementaryGroupIDs: [27, 1_001], primaryGroupID: 1_001,
        effectiveGroup: PeerFacts.Group(name: "kc-demo", hasMembers: false))

    private static func changed(_ change: (inout PeerFacts) -> Void) -> PeerFacts {
        var facts = setgid
        change(&facts)
        return facts
    }

    private static let registrations = ProgramRegistrations([
        "kc-demo": Entitlements(applicationIdentifier: "group:kc-demo", keychainAccessGroups: ["com.example.shared"])
    ])

    @Test("A setgid program whose group root has registered has the identity of the group")
    func program() {
        #expect(PeerIdentity(Self.setgid, registrations: Self.registrations) == .programGroup("kc-demo"))
    }

    @Test(
        "A group that the process may have otherwise identifies no program",
        arguments: [
            changed { $0.realGroupID = 990 },
            changed { $0.supplementaryGroupIDs = [990] },
            changed { $0.primaryGroupID = 990 },
            changed { $0.effectiveGroup = PeerFacts.Group(name: "kc-demo", hasMembers: true) },
            changed { $0.effectiveGroup = PeerFacts.Group(name: "other", hasMembers: false) },
            changed { $0.effectiveGroupID = 1_000 },
            changed { $0.effectiveGroupID = 100_000 },
            changed { $0.effectiveGroupID = 0 },
        ])
    func otherwise(facts: PeerFacts) {
        #expect(PeerIdentity(facts, registrations: Self.registrations) == .anyProgram)
    }

    @Test(
        "A fact that is missing never raises the level",
        arguments: [
            changed { $0.realGroupID = nil }, changed { $0.supplementaryGroupIDs = nil }, changed { $0.primaryGroupID = nil },
            changed { $0.effectiveGroup = nil },
        ])
    func missing(facts: PeerFacts) {
        #expect(PeerIdentity(facts, registrations: Self.registrations) == .anyProgram)
    }

    @Test("A group that root has not registered identifies no program")
    func unregistered() {
        #expect(PeerIdentity(Self.setgid, registrations: ProgramRegistrations()) == .anyProgram)
    }

    // MARK: Services of the system

    @Test(
        "A process below system.slice is in a service of the system",
        arguments: [
            ("0::/system.slice/deploy.service\n", "deploy.service"), ("0::/system.slice/deploy.service/worker/1\n", "deploy.service"),
            ("0::/system.slice/system-sync.slice/sync@alice.service\n", "sync@alice.service"),
            ("9:name=systemd:/\n0::/system.slice/deploy.service\n", "deploy.service"),
            ("1:name=systemd:/system.slice/deploy.service\n0::/system.slice/deploy.service\n", "deploy.service"),
        ])
    func systemService(text: String, name: String) {
        #expect(PeerFacts.systemService(controlGroups: Array(text.utf8)) == name)
        var facts = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
        facts.systemService = name
        #expect(PeerIdentity(facts, registrations: ProgramRegistrations()) == .systemService(name))
        facts.program = .verified
        #expect(PeerIdentity(facts, registrations: ProgramRegistrations()) == .program("/usr/bin/deploy"))
    }

    @Test(
        "Control groups that a user can make, and those of other kinds, are no service of the system",
        arguments: [
            "", "0::/\n", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/deploy.service\n",
            "0::/user.slice/user-1000.slice/user@1000.service/system.slice/deploy.service\n", "0::/../system.slice/deploy.service\n",
            "0::/system.slice/docker-1.scope\n", "0::/system.slice\n", "0::/system.slice/\n", "0::/deploy.service\n",
            "0::/system.slice/snap.example.app.service\n", "5:memory:/system.slice/deploy.service\n0::/\n", "nonsense\n",
            "12:pids:/a\n1:name=systemd:/system.slice/deploy.service\n0::/\n", "0::/system.slice/a.service\n0::/system.slice/a.service\n",
            "0::/system.slice/a b.service\n",
            "0::/system.slice/inner.scope/deploy.service\n",
        ])
    func noSystemService(text: String) {
        #expect(PeerFacts.systemService(controlGroups: Array(text.utf8)) == nil)
    }

    @Test("A service has its group after those that it declares, and no other program has it or declares it unnoticed")
    func serviceGroup() {
        let service = PeerIdentity.systemService("deploy.service")
        #expect(Self.groups(service, declaring: ["a"]) == ["a", "app", "unit:deploy.service"])
        #expect(
            Self.groups(service, declaring: ["unit:deploy.service", "group:kc-demo", "com.example.shared"]) == [
                "unit:deploy.service", "app",
            ])
        let facts = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
        let declared = Entitlements(applicationIdentifier: "app", keychainAccessGroups: ["unit:deploy.service"])
        for identity in [PeerIdentity.anyProgram, .program("/usr/bin/deploy"), .systemService("other.service")] {
            #expect(!Self.groups(identity, declaring: ["unit:deploy.service"]).contains("unit:deploy.service"))
            let failure = failure { try identity.requireGroups(of: declared, facts, registrations: Self.registrations) }
            #expect(failure?.status == .missingEntitlement)
        }
        #expect(failure { try service.requireGroups(of: declared, facts, registrations: Self.registrations) } == nil)
        #expect(PeerIdentity(name: "unit:deploy.service") == service && service.name == "unit:deploy.service")
    }

    // MARK: Access groups

    private static func groups(_ identity: PeerIdentity, declaring declared: [String], as identifier: String = "app") -> [String] {
        let entitlements = Entitlements(applicationIdentifier: identifier, keychainAccessGroups: declared)
        return identity.entitlements(declared: entitlements, registrations: registrations).accessGroups
    }

    @Test("A program with an identity has the groups that root has registered, whatever it declares")
    func registered() {
        #expect(Self.groups(.programGroup("kc-demo"), declaring: ["mine"]) == ["com.example.shared", "group:kc-demo"])
    }

    @Test("Any other program has the groups that it declares, in its order")
    func declared() {
        #expect(Self.groups(.anyProgram, declaring: ["b", "a"]) == ["b", "a", "app"])
    }

    @Test(
        "No other program gets a group of a registered program, or one that an identity alone can have",
        arguments: [
            "com.example.shared", "group:kc-demo", "group:other", "program:/usr/bin/gh", "flatpak:org.example.App", "snap:example",
            "unit:example.service", "user:www-data",
        ])
    func refused(group: String) {
        #expect(Self.groups(.anyProgram, declaring: [group]) == ["app"])
        #expect(Self.groups(.anyProgram, declaring: [], as: group) == [])
    }

    @Test("The groups of synchronization itself are never given")
    func synchronization() {
        #expect(Self.groups(.anyProgram, declaring: ["keychain-sync.circle"]) == ["app"])
    }
}

@Suite("A connection between two processes")
struct PacketSocketTests {
    @Test("It is readable while there is a packet, which looking does not take, and at its end")
    func readability() throws {
        var ends: [Int32] = [0, 0]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends) == 0)
        let socket = try PacketSocket(adopting: ends[0])
        var found = [socket.isReadable]
        do {
            let other = try PacketSocket(adopting: ends[1])
            try other.send([1], until: .after(seconds: 60))
            found += [socket.isReadable, socket.isReadable]
            var buffer: [UInt8] = [0, 0]
            let received = try socket.receive(into: &buffer, until: .after(seconds: 60))
            #expect(received?.byteCount == 1)
            found.append(socket.isReadable)
        }
        found.append(socket.isReadable)
        #expect(found == [false, true, true, false, true])
    }
}
