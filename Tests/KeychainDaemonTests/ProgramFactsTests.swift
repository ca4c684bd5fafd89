// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainPeers
import Testing

extension ProgramFacts {
    /// Those of a program that is known by its path, /usr/bin/deploy.
    static let verified: ProgramFacts = {
        var facts = ProgramFacts()
        facts.executedFile = File(device: 1, inode: 2)
        facts.fileAtPath = facts.executedFile
        facts.path = "/usr/bin/deploy"
        (facts.isFileOfRoot, facts.areDirectoriesOfRoot, facts.isOutsideOfContainers, facts.isMappedCodeOfRoot) = (true, true, true, true)
        (facts.isOnMountOfUser, facts.isTraced) = (false, false)
        return facts
    }()
}

@Suite("Which program file a process executes, from what keychain-peer says")
struct ProgramFactsTests {
    private static let verified = ProgramFacts.verified

    private static func changed(_ change: (inout ProgramFacts) -> Void) -> ProgramFacts {
        var facts = verified
        change(&facts)
        return facts
    }

    private static func identity(_ program: ProgramFacts?) -> PeerIdentity {
        var facts = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
        facts.program = program
        return PeerIdentity(facts, registrations: ProgramRegistrations())
    }

    private static var answers: [WritableKeyPath<ProgramFacts, Bool?>] {
        [
            \.isFileOfRoot, \.areDirectoriesOfRoot, \.isOutsideOfContainers, \.isMappedCodeOfRoot, \.isOnMountOfUser, \.isTraced,
        ]
    }

    /// The facts with one of them missing.
    private static func withoutEach(_ facts: ProgramFacts) -> [ProgramFacts] {
        var all = answers.map { answer in
            var lacking = facts
            lacking[keyPath: answer] = nil
            return lacking
        }
        for change: (inout ProgramFacts) -> Void in [
            { $0.executedFile = nil }, { $0.fileAtPath = nil }, { $0.path = nil },
        ] {
            var lacking = facts
            change(&lacking)
            all.append(lacking)
        }
        return all
    }

    @Test("A program whose file only root can change is identified by its path")
    func program() {
        #expect(Self.identity(Self.verified) == .program("/usr/bin/deploy"))
        #expect(Self.identity(nil) == .anyProgram)
    }

    @Test(
        "Facts that allow another program leave it unidentified",
        arguments: [
            changed { $0.fileAtPath = ProgramFacts.File(device: 1, inode: 9) },
            changed { $0.fileAtPath = ProgramFacts.File(device: 9, inode: 2) },
            changed { $0.isFileOfRoot = false }, changed { $0.areDirectoriesOfRoot = false }, changed { $0.isOutsideOfContainers = false },
            changed { $0.isMappedCodeOfRoot = false }, changed { $0.isOnMountOfUser = true }, changed { $0.isTraced = true },
        ])
    func unidentified(facts: ProgramFacts) {
        #expect(Self.identity(facts) == .anyProgram)
    }

    @Test("A fact that is missing never raises the level, whatever the other ones are")
    func missing() {
        var count = 0
        for number in 0..<64 {
            var facts = Self.verified
            for (index, answer) in Self.answers.enumerated() { facts[keyPath: answer] = number >> index & 1 == 1 }
            for lacking in Self.withoutEach(facts) {
                #expect(Self.identity(lacking) == .anyProgram)
                count += 1
            }
        }
        #expect(count == 64 * 9)
    }

    @Test(
        "Interpreters and the dynamic linker have no identity",
        arguments: [
            "/usr/bin/python3.11", "/usr/bin/python3.13-dbg", "/usr/bin/bash", "/usr/bin/perl5.36.0", "/usr/bin/node-20", "/usr/bin/php8.2",
            "/usr/lib/jvm/java-21/bin/java", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1",
            "/usr/bin/wine64",
            "/usr/bin/qemu-aarch64", "/usr/bin/busybox", "/usr/bin/vim.basic",
        ])
    func interpreter(path: String) {
        #expect(Self.identity(Self.changed { $0.path = path }) == .anyProgram)
    }

    @Test(
        "Programs whose names begin like that of an interpreter have one", arguments: ["/usr/bin/nodelay", "/usr/bin/shred", "/usr/bin/gh"])
    func notInterpreter(path: String) {
        #expect(Self.identity(Self.changed { $0.path = path }) == .program(path))
    }

    // MARK: Access groups

    private static func groups(
        _ declared: [String], as identifier: String = "app", isAppClip: Bool = false, registrations: ProgramRegistrations = .init()
    ) -> [String] {
        identity(verified).entitlements(
            declared: Entitlements(applicationIdentifier: identifier, keychainAccessGroups: declared, isAppClip: isAppClip),
            registrations: registrations
        ).accessGroups
    }

    @Test("An identified program keeps the groups that it declares, and has its own after them")
    func after() {
        #expect(Self.groups(["b", "a"]) == ["b", "a", "app", "program:/usr/bin/deploy"])
    }

    @Test("Its own group is where it declares it, for example as the default for new items")
    func first() {
        #expect(Self.groups(["program:/usr/bin/deploy", "a"]) == ["program:/usr/bin/deploy", "a", "app"])
        #expect(Self.groups([], as: "program:/usr/bin/deploy") == ["program:/usr/bin/deploy"])
    }

    private static let shared = ProgramRegistrations(byPath: [
        "/usr/bin/deploy": Entitlements(applicationIdentifier: "com.example.shared"),
        "/usr/bin/rollback": Entitlements(applicationIdentifier: "com.example.shared"),
    ])

    @Test("Programs that root has registered by their paths share a group, which no other program gets")
    func sharedGroup() {
        #expect(Self.groups(["a"], registrations: Self.shared) == ["a", "app", "com.example.shared", "program:/usr/bin/deploy"])
        #expect(Self.groups(["com.example.shared", "a"], registrations: Self.shared).first == "com.example.shared")
        let declared = Entitlements(applicationIdentifier: "app", keychainAccessGroups: ["com.example.shared"])
        for identity in [PeerIdentity.anyProgram, .program("/usr/bin/gh"), .programGroup("com.example.shared"), .programGroup("kc-demo")] {
            let groups = identity.entitlements(declared: declared, registrations: Self.shared).accessGroups
            #expect(!groups.contains("com.example.shared"), "\(identity)")
        }
    }

    @Test("It gets no group of another program")
    func foreign() {
        let registrations = ProgramRegistrations(["kc-demo": Entitlements(applicationIdentifier: "com.example.shared")])
        #expect(
            Self.groups(["com.example.shared", "program:/usr/bin/gh", "group:a"], registrations: registrations)
                == ["app", "program:/usr/bin/deploy"])
    }

    @Test("An app clip has its one group only")
    func appClip() {
        #expect(Self.groups([], isAppClip: true) == ["app"])
    }

    @Test("A program that declares the group of a verified program is refused, unless it is that program")
    func refusedGroup() {
        func status(_ facts: ProgramFacts?, _ group: String) -> KeychainStatus? {
            var peer = PeerFacts(userID: 1_001, effectiveGroupID: 1_001)
            peer.program = facts
            let declared = Entitlements(applicationIdentifier: "app", keychainAccessGroups: [group])
            return failure { try Self.identity(facts).requireGroups(of: declared, peer, registrations: Self.shared) }?.status
        }
        #expect(status(Self.verified, "com.example.shared") == nil)
        #expect(status(Self.changed { $0.path = "/usr/bin/gh" }, "com.example.shared") == .missingEntitlement)
        #expect(status(Self.changed { $0.isTraced = true }, "com.example.shared") == .missingEntitlement)
        #expect(status(nil, "com.example.shared") == .notAvailable)
        #expect(status(Self.verified, "program:/usr/bin/deploy") == nil)
        #expect(status(Self.verified, "program:/usr/bin/gh") == .missingEntitlement)
        #expect(status(Self.changed { $0.isTraced = true }, "program:/usr/bin/deploy") == .missingEntitlement)
        #expect(status(nil, "program:/usr/bin/deploy") == .notAvailable)
        #expect(status(nil, "app") == nil)
    }

    // MARK: Encoding

    @Test("Facts are the same after their encoding, which has one size")
    func roundTrip() {
        for facts in [Self.verified, ProgramFacts()] + Self.withoutEach(Self.verified) {
            #expect(facts.encoded.count == ProgramFacts.encodedByteCount)
            #expect(ProgramFacts(decoding: facts.encoded) == facts)
        }
    }

    @Test("Every change of a byte gives facts with another encoding, or none")
    func strict() {
        let encoded = Self.verified.encoded
        for index in encoded.indices {
            for bit in 0..<8 {
                var changed = encoded
                changed[index] ^= 1 << bit
                if let facts = ProgramFacts(decoding: changed) { #expect(facts.encoded == changed) }
            }
            #expect(ProgramFacts(decoding: Array(encoded[..<index])) == nil)
        }
        #expect(ProgramFacts(decoding: encoded + [0]) == nil)
    }

    @Test(
        "A path that is too long, relative, or shows something else on a terminal is unknown", arguments: ["a", "", "/a\u{1B}[2J", "/\n"])
    func path(text: String) {
        for path in [text, "/" + String(repeating: "a", count: 1_024)] {
            #expect(ProgramFacts(decoding: Self.changed { $0.path = path }.encoded)?.path == nil)
        }
    }
}
