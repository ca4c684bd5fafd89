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
import Synchronization
import Testing

@testable import keychaind

/// A prompt for an item that needs the passcode, shown by an agent of the user.
@Suite("Prompts of keychaind through an agent", .blocking)
struct AgentTests {
    private static let passcode = "swordfish"

    /// Runs `body` with a service whose keychain has an item that needs the passcode.
    private func withService(
        as identity: PeerIdentity = .programGroup("kc-demo"), promptTimeoutSeconds: UInt32 = PresenceQuestion.standardTimeoutSeconds,
        _ body: (InProcessService) throws -> Void
    ) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let keychain = try LocalKeychain.withCheapPasscode(home: home) { $0.promptTimeoutSeconds = promptTimeoutSeconds }
            defer { keychain.forgetKeys() }
            try keychain.setPasscode(Passcode(text: Self.passcode), autoLock: .never)
            try keychain.with(entitlements: Entitlements(applicationIdentifier: "app")).addSafe()
            try body(try InProcessService(keychain, as: identity, agents: Agents(program: "/nowhere/keychain-agent")))
        }
    }

    @Test("The person is asked by the name that keychaind has found out, and the answer opens the item")
    func answer() throws {
        try withService { service in
            let person = ScriptedPresencePrompter(.type("wrong"), .type(Self.passcode))
            let launcher = StubLauncher(person, service.path)
            let value = try service.client(launcher: launcher).value(of: "safe", "for the test")
            #expect(value == "12345")
            #expect(person.questions.map(\.triesLeft) == [nil, 2])
            #expect(person.questions.first?.requester == "The program of the group kc-demo (process \(CurrentProcess.id))")
            #expect(person.questions.first?.reason == "for the test")
            #expect(launcher.endedPrograms == ["/nowhere/keychain-agent"])
        }
    }

    @Test("A program without an identity is called so, whatever it says")
    func unverifiedProgram() throws {
        try withService(as: .anyProgram) { service in
            let person = ScriptedPresencePrompter(.type(Self.passcode))
            let value = try service.client(launcher: StubLauncher(person, service.path)).value(of: "safe", nil)
            #expect(value == "12345")
            #expect(person.questions.map(\.requester) == ["An unverified program (process \(CurrentProcess.id))"])
        }
    }

    @Test("Without an agent, the call fails at once")
    func noAgent() throws {
        try withService { service in
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try service.client().value(of: "safe", nil) }
            let unable = StubLauncher(ScriptedPresencePrompter(), service.path)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try service.client(launcher: unable).value(of: "safe", nil) }
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) {
                try service.client(launcher: unable).requireCanAuthenticate(.userPresence, in: nil)
            }
            let able = StubLauncher(ScriptedPresencePrompter(.cancel), service.path)
            try service.client(launcher: able).requireCanAuthenticate(.userPresence, in: nil)
            #expect(unable.endedPrograms == [])
            #expect(able.endedPrograms == [])
        }
    }

    @Test("An agent that answers wrongly gets no more tries than a person")
    func wrongAnswers() throws {
        try withService { service in
            let fake = ScriptedPresencePrompter(.type("1"), .type("2"), .type("3"), .type(Self.passcode))
            let failure = #expect(throws: KeychainFailure.self) {
                try service.client(launcher: StubLauncher(fake, service.path)).value(of: "safe", nil)
            }
            #expect(failure?.refusal == .wrongPasscode)
            #expect(fake.remainingCount == 1)
        }
    }

    @Test("A person who cancels, and an agent that ends, fail the call")
    func refusals() throws {
        try withService { service in
            let canceling = StubLauncher(ScriptedPresencePrompter(.cancel), service.path)
            #expect(throws: KeychainFailure(.userCanceled, "")) { try service.client(launcher: canceling).value(of: "safe", nil) }
            let agent = Mutex<PresenceAgent?>(nil)
            let dying = ScriptedPresencePrompter(
                .decide { _ in
                    agent.withLock { $0?.end() }
                    return .cancel
                })
            let started = try PresenceAgent(DaemonClient.connector(toSocketAt: service.path), .allProcesses)
            agent.withLock { $0 = started }
            #expect(BackgroundThread.start { started.run(dying) })
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try service.client().value(of: "safe", nil) }
        }
    }

    @Test("An agent of the session shows the prompts of programs that have none, and no agent those of another process")
    func sessionAgent() throws {
        try withService { service in
            let connector = DaemonClient.connector(toSocketAt: service.path)
            let foreign = try PresenceAgent(connector, .parentProcess)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try service.client().value(of: "safe", nil) }
            let agents = try (0..<2).map { _ in try PresenceAgent(connector, .allProcesses) }
            let person = ScriptedPresencePrompter(.type(Self.passcode))
            for agent in agents { #expect(BackgroundThread.start { agent.run(person) }) }
            #expect(try service.client().value(of: "safe", nil) == "12345")
            #expect(person.questions.count == 1)
            for agent in agents + [foreign] { agent.end() }
        }
    }

    @Test("The agent of the program's own terminal or display comes before that of the session, which is asked if there is none")
    func ownAgentFirst() throws {
        try withService { service in
            let connector = DaemonClient.connector(toSocketAt: service.path)
            let inSession = ScriptedPresencePrompter(.type(Self.passcode), .type(Self.passcode), .type(Self.passcode))
            let agent = try PresenceAgent(connector, .allProcesses)
            #expect(BackgroundThread.start { agent.run(inSession) })
            let atTerminal = ScriptedPresencePrompter(.type(Self.passcode))
            #expect(try service.client(launcher: StubLauncher(atTerminal, service.path)).value(of: "safe", nil) == "12345")
            #expect(atTerminal.remainingCount == 0 && inSession.remainingCount == 3)
            let unable = StubLauncher(ScriptedPresencePrompter(), service.path)
            #expect(try service.client(launcher: unable).value(of: "safe", nil) == "12345")
            try service.client(launcher: unable).requireCanAuthenticate(.userPresence, in: nil)
            #expect(inSession.remainingCount == 2)
            #expect(try service.client(launcher: FailingLauncher()).value(of: "safe", nil) == "12345")
            #expect(inSession.remainingCount == 1)
            agent.end()
        }
    }

    @Test("A program whose agent does not start learns why, if there is none of the session")
    func agentDoesNotStart() throws {
        try withService { service in
            #expect(throws: FailingLauncher.failure) { try service.client(launcher: FailingLauncher()).value(of: "safe", nil) }
        }
    }

    @Test("An agent's reason cannot change the log of the program, nor fill it")
    func hostileReason() throws {
        try withService { service in
            let text = "\u{1B}[2J\nerror: \u{202E}" + String(repeating: "x", count: 10_000)
            let fake = StubLauncher(ScriptedPresencePrompter(.fail(text)), service.path)
            let failure = try #require(failure { _ = try service.client(launcher: fake).value(of: "safe", nil) })
            #expect(failure.reason.utf8.count < 1_000)
            #expect(!failure.reason.unicodeScalars.contains { ["\u{1B}", "\n", "\u{202E}"].contains($0) })
        }
    }

    @Test(
        "A program in a sandbox is no agent, neither of all processes nor of its own",
        arguments: [AgentScope.allProcesses, .ownProcess, .parentProcess])
    func sandboxedAgent(scope: AgentScope) throws {
        for sandbox in [Sandbox.flatpak(applicationID: "org.example.App"), .snap(name: "example"), .unnamed] {
            try withService(as: .sandboxed(sandbox)) { service in
                #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                    try PresenceAgent(DaemonClient.connector(toSocketAt: service.path), scope)
                }
            }
        }
    }

    @Test("An agent that speaks without a question is used no more", arguments: [1, 2])
    func unaskedAnswers(count: Int) throws {
        try withService { service in
            let fake = try RawConnection(service.path)
            try fake.identify()
            try fake.send(Request(.showPrompts(.allProcesses)).message)
            _ = try fake.receive()
            for _ in 0..<count { try fake.send(Request(.answer(.empty)).message) }
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try service.client().value(of: "safe", nil) }
            #expect(try fake.receive() == nil)
        }
    }

    @Test("An agent that sends something else than an answer is used no more")
    func otherRequests() throws {
        try withService { service in
            let fake = try RawConnection(service.path)
            try fake.identify()
            try fake.send(Request(.showPrompts(.allProcesses)).message)
            _ = try fake.receive()
            let outcome = Mutex<KeychainFailure?>(nil)
            let client = service.client()
            #expect(
                BackgroundThread.start {
                    let failed = failure { _ = try client.value(of: "safe", nil) }
                    outcome.withLock { $0 = failed }
                })
            _ = try fake.receive()
            try fake.send(Request(.sessionStatus).message)
            #expect(try fake.receive() == nil)
            #expect(waitUntil { outcome.withLock { $0?.status == .interactionNotAllowed } })
        }
    }

    @Test("A program that ends while its prompt is shown ends the prompt, and the next program is asked for")
    func callerEnds() throws {
        try withService { service in
            let agent = try PresenceAgent(DaemonClient.connector(toSocketAt: service.path), .allProcesses)
            let isAsked = DispatchSemaphore(value: 0)
            let asks = ScriptedPresencePrompter(
                .decide { _ in
                    isAsked.signal()
                    agent.waitForEnd()
                    return .cancel
                })
            let hasEnded = DispatchSemaphore(value: 0)
            #expect(
                BackgroundThread.start {
                    agent.run(asks)
                    hasEnded.signal()
                })
            let caller = try RawConnection(service.path)
            try caller.identify()
            try caller.send(Request(.copyMatching(.safe(nil))).message)
            #expect(isAsked.wait(timeout: .now() + 60) == .success)
            caller.socket.shutDown()
            #expect(hasEnded.wait(timeout: .now() + 60) == .success)
            let person = ScriptedPresencePrompter(.type(Self.passcode))
            #expect(try service.client(launcher: StubLauncher(person, service.path)).value(of: "safe", nil) == "12345")
        }
    }

    @Test("An agent that never answers keeps a call until the deadline of its prompt, and is used no more")
    func hangingAgent() throws {
        try withService(promptTimeoutSeconds: 1) { service in
            let fake = try RawConnection(service.path)
            try fake.identify()
            try fake.send(Request(.showPrompts(.allProcesses)).message)
            _ = try fake.receive()
            let failure = try #require(failure { _ = try service.client().value(of: "safe", nil) })
            #expect(failure.status == .interactionNotAllowed)
            #expect(failure.refusal == .timedOut)
            let question = try fake.receive()
            #expect(question != nil)
            #expect(try fake.receive() == nil)
            let person = ScriptedPresencePrompter(.type(Self.passcode))
            #expect(try service.client(launcher: StubLauncher(person, service.path)).value(of: "safe", nil) == "12345")
        }
    }

    @Test("An agent that ends before it is told that it is registered leaves nothing behind")
    func unregistered() throws {
        try withService { service in
            for _ in 0..<20 {
                let fake = try RawConnection(service.path)
                try fake.identify()
                try fake.send(Request(.showPrompts(.allProcesses)).message)
                fake.socket.shutDown()
            }
            let client = service.client()
            #expect(waitUntil { failure { try client.requireCanAuthenticate(.userPresence, in: nil) }?.status == .interactionNotAllowed })
        }
    }

    @Test("While a person is asked, the other programs of the user search")
    func searchesMeanwhile() throws {
        try withService { service in
            try service.client().set("plain", "54321")
            let other = service.client()
            let meanwhile = Mutex<String?>(nil)
            let person = ScriptedPresencePrompter(
                .decide { _ in
                    let value = try? other.value(of: "plain")
                    meanwhile.withLock { $0 = value }
                    return .type(Self.passcode)
                })
            let client = service.client(launcher: StubLauncher(person, service.path))
            let all = MatchRequest(
                query: ItemQuery(itemClass: .genericPassword), limit: nil, includesSecrets: true, attributes: .none,
                authentication: Authentication(context: AuthenticationContext()))
            #expect(try client.copyMatching(all).count == 2)
            #expect(meanwhile.withLock { $0 } == "54321")
        }
    }

    @Test("One prompt is shown at a time, and calls of one process with the same question share it")
    func manyCalls() async throws {
        let keychain = try InMemoryKeychain()
        try keychain.setPasscode(Self.passcode)
        try keychain.keychain.addSafe()
        let service = try InProcessService(keychain.keychain, agents: Agents(program: "/nowhere"))
        let shown = Mutex((now: 0, most: 0))
        let prompter = ClosurePrompter { _ in
            shown.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            defer { shown.withLock { $0.now -= 1 } }
            return Self.passcode
        }
        let client = service.client("in-memory", launcher: StubLauncher(prompter, service.path))
        let outcomes = await onThreads(
            (0..<16).map { number in { @Sendable () -> Bool in (try? client.value(of: "safe", "call \(number / 2)")) == "12345" } })
        #expect(outcomes.allSatisfy { $0 })
        #expect(shown.withLock { $0.most } == 1)
    }
}

/// An agent in this process, for the calls of a client of this process.
final class StubLauncher: AgentLauncher {
    private struct Running: RunningAgent {
        let agent: PresenceAgent
        let onEnd: @Sendable () -> Void

        let hasEnded = false

        func end() {
            agent.end()
            onEnd()
        }
    }

    private let prompter: any PresencePrompter
    private let path: String
    private let ended = Mutex<[String]>([])

    init(_ prompter: any PresencePrompter, _ path: String) {
        self.prompter = prompter
        self.path = path
    }

    /// The programs of the agents that were ended.
    var endedPrograms: [String] { ended.withLock(\.self) }

    var canAsk: Bool { prompter.canAsk }

    func launch(_ program: String) throws(KeychainFailure) -> any RunningAgent {
        let agent = try PresenceAgent(DaemonClient.connector(toSocketAt: path), .ownProcess)
        let prompter = prompter
        guard BackgroundThread.start({ agent.run(prompter) }) else { throw KeychainFailure(.allocate, "no thread") }
        return Running(agent: agent) { [self] in ended.withLock { $0.append(program) } }
    }
}

/// An agent that never starts.
private struct FailingLauncher: AgentLauncher {
    static let failure = KeychainFailure(.interactionNotAllowed, "it does not start", refusal: .notInteractive)

    let canAsk = true

    func launch(_ program: String) throws(KeychainFailure) -> any RunningAgent { throw Self.failure }
}

/// A person whose answer a closure gives.
private struct ClosurePrompter: PresencePrompter {
    let answer: @Sendable (PresenceQuestion) -> String

    init(_ answer: @escaping @Sendable (PresenceQuestion) -> String) {
        self.answer = answer
    }

    var canAsk: Bool { true }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        try ScriptedPresencePrompter(.type(answer(question))).ask(question)
    }
}

extension MatchRequest {
    static func safe(_ reason: String?) -> MatchRequest {
        MatchRequest(
            query: .account("safe"), includesSecrets: true, attributes: .none,
            authentication: Authentication(interaction: .allowed, prompt: reason))
    }
}

extension Keychain {
    /// Adds an item that can be read with the passcode only.
    func addSafe() throws(KeychainFailure) {
        _ = try add(
            AddRequest(
                itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("safe")]), secret: Data("12345".utf8),
                accessControl: AccessControl(.whenUnlocked, constraint: .userPresence)))
    }

    /// Reads an item that may need the passcode, for which the program gives a reason.
    func value(of account: String, _ reason: String?) throws(KeychainFailure) -> String {
        var request = MatchRequest.safe(reason)
        request.query = .account(account)
        return String(decoding: try copyMatching(request).first?.secret ?? Data(), as: UTF8.self)
    }
}
