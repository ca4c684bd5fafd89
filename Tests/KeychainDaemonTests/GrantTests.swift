// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainPeers
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Testing

@testable import keychaind

/// What a person lets a program read of the items of another one.
@Suite("Grants of keychaind", .blocking)
struct GrantTests {
    private static let passcode = "swordfish"
    private static let reader = "program:/usr/bin/reader"

    /// A keychain with an item of the program `owner`, and the services of programs with different identities on it.
    private final class Machine {
        let keychain: LocalKeychain
        let directory: String
        private(set) var services: [PeerIdentity: InProcessService] = [:]
        private(set) var grants: UserGrants

        init(_ keychain: LocalKeychain, _ directory: String) {
            self.keychain = keychain
            self.directory = directory
            grants = UserGrants(inDirectory: directory)
        }

        func client(
            _ identity: PeerIdentity = .program("/usr/bin/reader"), _ identifier: String = "app",
            _ person: ScriptedPresencePrompter = .init()
        ) throws -> DaemonKeychain {
            let service =
                try services[identity]
                ?? InProcessService(keychain, as: identity, agents: Agents(program: "/nowhere/keychain-agent"), grants: grants)
            services[identity] = service
            return service.client(identifier, launcher: StubLauncher(person, service.path))
        }

        /// As when keychaind is started again.
        func restart() {
            services = [:]
            grants = UserGrants(inDirectory: directory)
        }
    }

    private func withMachine(passcode: String? = passcode, _ body: (Machine) throws -> Void) throws {
        try withLocalKeychain { keychain, _ in
            try withTemporaryDirectory { directory in
                if let passcode { try keychain.setPasscode(Passcode(text: passcode), autoLock: .never) }
                try keychain.with(entitlements: Entitlements(applicationIdentifier: "owner")).set("token", "12345")
                try body(Machine(keychain, directory))
            }
        }
    }

    @Test("A granted program reads the items of the group and changes none, until that is revoked, while others find nothing")
    func grant() throws {
        try withMachine { machine in
            let running = try machine.client()
            #expect(try running.find("token") == nil)
            let person = ScriptedPresencePrompter(.type("wrong"), .type(Self.passcode))
            let manager = try machine.client(.program("/usr/bin/valet"), "valet", person)
            try manager.grant(program: Self.reader, group: "owner")
            #expect(person.questions.first?.purpose == "let '\(Self.reader)' read all items of the access group 'owner'")
            #expect(person.questions.first?.requester.hasPrefix("/usr/bin/valet (process ") == true)

            #expect(try running.find("token") == "12345")
            #expect(throws: KeychainFailure(.itemNotFound, "")) {
                try running.update(UpdateRequest(query: .account("token"), secret: Data()))
            }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try running.delete(DeleteRequest(query: .account("token"))) }
            #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                try running.add(AddRequest(itemClass: .genericPassword, attributes: ItemAttributes([.accessGroup: .string("owner")])))
            }
            let item = try #require(try running.copyMatching(MatchRequest(query: .account("token"))).first)
            let byReference = ItemQuery(itemClass: .genericPassword, reference: item.reference)
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try running.delete(DeleteRequest(query: byReference)) }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try running.update(UpdateRequest(query: byReference, secret: Data([1]))) }
            try running.set("mine", "1")
            #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                try running.update(UpdateRequest(query: .account("mine"), changes: ItemAttributes([.accessGroup: .string("owner")])))
            }
            for identity in [
                PeerIdentity.anyProgram, .program("/usr/bin/valet"), .programGroup("reader"), .sandboxed(.snap(name: "reader")),
            ] {
                #expect(try machine.client(identity).find("token") == nil, "\(identity)")
            }
            let grants = try manager.grants()
            #expect(grants.map(\.program) == [Self.reader] && grants.map(\.group) == ["owner"])

            machine.restart()
            let restarted = try machine.client()
            #expect(try restarted.find("token") == "12345")
            // Any program may take access away.
            try machine.client(.anyProgram).revoke(program: Self.reader, group: "owner")
            #expect(try restarted.find("token") == nil)
            #expect(try machine.client().grants() == [])
            machine.restart()
            #expect(try machine.client().find("token") == nil)
        }
    }

    @Test(
        "Programs with a group of their own, and in a sandbox, can be granted access",
        arguments: [
            (PeerIdentity.programGroup("kc-reader"), "group:kc-reader"), (.sandboxed(.snap(name: "reader")), "snap:reader"),
            (.sandboxed(.flatpak(applicationID: "org.example.Reader")), "flatpak:org.example.Reader"),
        ])
    func identities(identity: PeerIdentity, name: String) throws {
        try withMachine { machine in
            try machine.client(.anyProgram, "app", .init(.type(Self.passcode))).grant(program: name, group: "owner")
            #expect(try machine.client(identity).find("token") == "12345")
        }
    }

    @Test("Without the passcode of a person nothing is granted")
    func refusals() throws {
        try withMachine { machine in
            let people: [(ScriptedPresencePrompter, KeychainStatus)] = [
                (.init(.cancel), .userCanceled), (.init(.type("1"), .type("2"), .type("3")), .authFailed),
                (.init(), .interactionNotAllowed),
            ]
            for (person, status) in people {
                let client = try machine.client(.program("/usr/bin/reader"), "app", person)
                #expect(throws: KeychainFailure(status, "")) { try client.grant(program: Self.reader, group: "owner") }
            }
            for (person, status) in [(ScriptedPresencePrompter(.cancel), KeychainStatus.userCanceled), (.init(), .interactionNotAllowed)] {
                let client = try machine.client(.program("/usr/bin/reader"), "app", person)
                #expect(throws: KeychainFailure(status, "")) { try client.requestAccess(to: "owner") }
                #expect(try client.find("token") == nil)
            }
            #expect(try machine.client().grants() == [])
        }
        try withMachine(passcode: nil) { machine in
            let client = try machine.client(.program("/usr/bin/reader"), "app", .init(.type("")))
            #expect(failure { try client.grant(program: Self.reader, group: "owner") }?.refusal == .passcodeNotSet)
            #expect(failure { try client.requestAccess(to: "owner") }?.refusal == .passcodeNotSet)
        }
    }

    @Test("An earlier answer in a context, and an unlocked keychain, grant nothing")
    func earlierAnswers() throws {
        try withMachine { machine in
            try machine.keychain.unlock(Passcode(text: Self.passcode), autoLock: .never)
            let person = ScriptedPresencePrompter(.type(Self.passcode), .type(Self.passcode), .cancel)
            let client = try machine.client(.program("/usr/bin/valet"), "valet", person)
            let context = AuthenticationContext()
            context.settings.reuseSeconds = 300
            try client.authenticate(.userPresence, of: nil, Authentication(context: context))
            try client.grant(program: Self.reader, group: "owner")
            #expect(throws: KeychainFailure(.userCanceled, "")) { try client.grant(program: Self.reader, group: "other") }
            #expect(person.remainingCount == 0)
        }
    }

    @Test("A program reads the items of another one after each question, on the connection on which it asked")
    func request() throws {
        try withMachine { machine in
            for identity in [PeerIdentity.anyProgram, .program("/usr/bin/valet")] {
                let person = ScriptedPresencePrompter(.type(Self.passcode))
                let client = try machine.client(identity, "app", person)
                try client.requestAccess(to: "owner")
                #expect(person.questions.first?.purpose == "read all items of the access group 'owner' of another program")
                #expect(try client.find("token") == "12345")
                #expect(throws: KeychainFailure(.itemNotFound, "")) { try client.delete(DeleteRequest(query: .account("token"))) }
                #expect(try machine.client(identity).find("token") == nil)
            }
        }
    }

    @Test("After the end of the connection on which access was given, nothing seems to be missing")
    func endOfConnection() throws {
        try withMachine { machine in
            let client = try machine.client(.anyProgram, "app", .init(.type(Self.passcode)))
            try client.requestAccess(to: "owner")
            machine.services.values.first?.end()
            #expect(waitUntil { (try? client.find("token")) != "12345" })
            #expect(throws: KeychainFailure(.notAvailable, "")) { try client.find("token") }
        }
    }

    @Test(
        "Names that are none, or that a prompt cannot show as they are, are refused before a person is asked",
        arguments: [
            ("reader", "owner"), ("program:reader", "owner"), ("program:/usr/bin/python3.11", "owner"), ("program:/usr//bin/a", "owner"),
            ("program:/usr/../a", "owner"), ("program:/", "owner"), ("flatpak:", "owner"), ("group:", "owner"), ("", "owner"),
            ("program:/a\u{1B}[2J", "owner"), ("program:/a", ""), ("program:/a", "x\ty"), ("program:/a", "x\ny"),
            ("program:/a", "x' of 'y"), ("program:/a", "x'\u{301}y"), ("program:/a", "x’y"),
            ("program:/a", String(repeating: "x", count: 200)), ("program:/" + String(repeating: "x", count: 200), "owner"),
            ("program:/a", "keychain-sync.circle"), ("program:/a", "com.apple.token"), ("program:/a", "\u{202E}x"), ("program:/a", "a  b"),
        ])
    func names(program: String, group: String) throws {
        try withMachine { machine in
            let person = ScriptedPresencePrompter(.type(Self.passcode))
            let client = try machine.client(.anyProgram, "app", person)
            #expect(throws: KeychainFailure(.parameter, "")) { try client.grant(program: program, group: group) }
            if program == "program:/a" {
                #expect(throws: KeychainFailure(.parameter, "")) { try client.requestAccess(to: group) }
            }
            #expect(person.remainingCount == 1)
        }
    }

    @Test("A program in a sandbox neither grants, nor asks for access, nor learns of grants")
    func sandbox() throws {
        try withMachine { machine in
            for sandbox in [Sandbox.snap(name: "reader"), .unnamed] {
                let client = try machine.client(.sandboxed(sandbox), "app", .init(.type(Self.passcode)))
                let denied = KeychainFailure(.missingEntitlement, "")
                #expect(throws: denied) { try client.grant(program: Self.reader, group: "owner") }
                #expect(throws: denied) { try client.revoke(program: Self.reader, group: "owner") }
                #expect(throws: denied) { try client.requestAccess(to: "owner") }
                #expect(throws: denied) { try client.grants() }
            }
        }
    }

    @Test("The same grant twice, one that is not there, and too many are refused")
    func counts() throws {
        try withMachine { machine in
            for number in 0..<AccessGrants.largestCount { try machine.grants.add(program: Self.reader, group: "group \(number)") }
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try machine.grants.add(program: Self.reader, group: "group 7") }
            #expect(throws: KeychainFailure(.allocate, "")) { try machine.grants.add(program: Self.reader, group: "owner") }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try machine.grants.remove(program: Self.reader, group: "owner") }
            machine.restart()
            #expect(try machine.grants.all().all.count == AccessGrants.largestCount)
        }
    }

    @Test("A damaged file of grants is kept, and no program that it may name takes items for missing")
    func damage() throws {
        try withMachine { machine in
            try machine.grants.add(program: Self.reader, group: "owner")
            let path = machine.directory + "/grants"
            let damaged = try Data(contentsOf: URL(filePath: path)).dropLast(2)
            try damaged.write(to: URL(filePath: path))
            machine.restart()
            #expect(throws: KeychainFailure(.notAvailable, "")) { try machine.client().find("token") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try machine.client(.anyProgram).grants() }
            #expect(throws: KeychainFailure(.notAvailable, "")) {
                try machine.client(.anyProgram).revoke(program: Self.reader, group: "owner")
            }
            #expect(try machine.client(.anyProgram).find("token") == nil)
            #expect(try Data(contentsOf: URL(filePath: path)) == damaged)
        }
    }
}

extension DaemonKeychain {
    /// The value of an item; nil if none is found.
    fileprivate func find(_ account: String) throws(KeychainFailure) -> String? {
        do throws(KeychainFailure) {
            return try value(of: account)
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }
}
