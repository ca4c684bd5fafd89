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
