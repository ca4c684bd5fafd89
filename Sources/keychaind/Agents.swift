// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// The agents of all users: processes that show prompts to a person.
///
/// Any program of a user outside of sandboxes can be one, and could as well show a prompt of its own. So an agent decides nothing: its answers are checked as those
/// of a program that calls, and it learns no more than the text of the prompts. It shows those of its own user only.
final class Agents: Sendable {
    /// The path of the program that clients start.
    let program: String
    private let agents = Mutex<[UInt32: [Agent]]>([:])

    init(program: String) {
        self.program = program
    }

    /// Keeps an agent, which may be used at once, until its connection ends.
    func serve(_ agent: Agent, ofUser user: UInt32) throws(MessageChannel.Failure) {
        // Also if the process has ended before it is told.
        defer {
            agents.withLock { agents in
                agents[user]?.removeAll { $0 === agent }
                if agents[user]?.isEmpty == true { agents[user] = nil }
            }
        }
        try agent.register { agents.withLock { $0[user, default: []].append(agent) } }
        agent.waitForEnd()
    }

    /// Returns the agents that show only the prompts of a process, and unless `ownOnly` after them those that show the prompts of all.
    fileprivate func candidates(ofUser user: UInt32, process: Int32, ownOnly: Bool) -> [Agent] {
        let agents = agents.withLock { $0[user] ?? [] }
        let own = agents.filter { $0.process == process }
        return ownOnly ? own : own + agents.filter { $0.process == nil }
    }
}

/// An agent, which shows one prompt at a time.
final class Agent: Sendable {
    /// The only process whose prompts it shows; nil for all processes of its user.
    let process: Int32?
    private let channel: MessageChannel
    private let sender: Int32
    private let buffer = Mutex(MessageChannel.Buffer())

    /// `sender` is the process that has connected, and from which all answers come.
    init(_ channel: MessageChannel, sender: Int32, process: Int32?) {
        self.channel = channel
        self.sender = sender
        self.process = process
    }

    /// Tells the agent that it is registered, before its first question.
    fileprivate func register(_ body: () -> Void) throws(MessageChannel.Failure) {
        let failure = buffer.withLock { _ -> MessageChannel.Failure? in
            body()
            do throws(MessageChannel.Failure) {
                try channel.send(Response(.done).message, until: .after(seconds: Self.sendingTimeoutSeconds))
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Whether the connection has ended, or the agent has said something without a question.
    fileprivate var hasEnded: Bool { channel.socket.isReadable }

    fileprivate func waitForEnd() { channel.socket.waitForEnd() }

    /// Shows a prompt, and returns the answer; nil if this agent cannot have shown it.
    ///
    /// An agent that does not follow the protocol, or does not answer in time, is used no more. So is one whose prompt is of no use, because the
    /// program that calls has ended, or because a finger has matched: it ends the prompt with its connection.
    fileprivate func answer(
        to question: PresenceQuestion, for caller: MessageChannel, endedBy end: PromptEnd
    ) throws(PresenceRefusal) -> PromptAnswer? {
        let outcome = buffer.withLock { buffer -> Result<PromptAnswer?, PresenceRefusal> in
            // A program whose prompt has waited for others may have ended.
            guard !caller.socket.isReadable else { return .failure(.failed(Self.callerHasEnded)) }
            // It has said something without a question, or has ended.
            guard !channel.socket.isReadable else {
                channel.socket.shutDown()
                return .success(nil)
            }
            do throws(MessageChannel.Failure) {
                try channel.send(Response(.question(question)).message, until: .after(seconds: Self.sendingTimeoutSeconds))
            } catch {
                channel.socket.shutDown()
                return .success(nil)
            }
            // A finger has matched, or the reader has failed, before the agent was told.
            let ended = Result<PromptAnswer, PresenceRefusal>.failure(.failed("the prompt was ended"))
            let answer =
                end.whileHandled(by: { [channel] in channel.socket.shutDown() }) {
                    Result { () throws(PresenceRefusal) in try receive(&buffer, question, caller) }
                } ?? ended
            if case .failure = answer { channel.socket.shutDown() }
            return answer.map(Optional.some)
        }
        return try outcome.get()
    }

    private func receive(
        _ buffer: inout MessageChannel.Buffer, _ question: PresenceQuestion, _ caller: MessageChannel
    ) throws(PresenceRefusal) -> PromptAnswer {
        let deadline = Deadline.after(seconds: question.timeoutSeconds &+ Self.graceSeconds)
        let ready: (this: Bool, other: Bool)
        do throws(Errno) {
            ready = try channel.socket.wait(or: caller.socket, until: deadline)
        } catch {
            throw .failed("keychaind cannot wait for the agent: \(error)")
        }
        // A program that waits for its reply sends nothing.
        if ready.other { throw .failed(Self.callerHasEnded) }
        guard ready.this else { throw .timedOut }
        do throws(MessageChannel.Failure) {
            let limit = WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount
            guard var message = try channel.receive(&buffer, limit: limit, until: deadline, isSenderAllowed: { $0.processID == sender })
            else {
                throw .closed
            }
            defer { message.body.wipe() }
            do throws(MalformedMessage) {
                if case .answer(let answer) = try Request(parsing: message).call { return answer }
            } catch {}
        } catch {}
        throw .failed("the agent has ended")
    }

    private static let callerHasEnded = "the program that called has ended, or has sent something before its reply"
    private static let sendingTimeoutSeconds: UInt32 = 2
    /// The prompter of an agent has the same limit, and says that the time is over.
    private static let graceSeconds: UInt32 = 2
}

/// Asks the person in front of a program through an agent.
final class AgentPrompter: PresencePrompter {
    private let agents: Agents
    private let userID: UInt32
    private let processID: Int32
    private let caller: MessageChannel
    private let call = Mutex<(asksOwnAgentsOnly: Bool, turn: SearchTurn?)>((false, nil))

    /// `caller` is the connection of the program, whose end cancels the prompt.
    init(_ agents: Agents, userID: UInt32, processID: Int32, caller: MessageChannel) {
        self.agents = agents
        self.userID = userID
        self.processID = processID
        self.caller = caller
    }

    /// Decides for the next call of the connection whether agents of the session show its prompts.
    ///
    /// `turn` is released while the call waits for a person.
    func prepare(asksOwnAgentsOnly: Bool, _ turn: SearchTurn?) { call.withLock { $0 = (asksOwnAgentsOnly, turn) } }

    private var candidates: [Agent] {
        agents.candidates(ofUser: userID, process: processID, ownOnly: call.withLock { $0.asksOwnAgentsOnly })
    }

    /// Not with an agent that has ended and is still listed: a scan would begin for a prompt that no person sees.
    var canAsk: Bool { candidates.contains { !$0.hasEnded } }

    func waiting<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        let turn = call.withLock { $0.turn }
        turn?.release()
        let result = try body()
        guard turn?.resume() != false else { throw KeychainFailure(.notAvailable, SearchLimit.isReached, cause: .busy) }
        return result
    }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer { try ask(question, endedBy: PromptEnd()) }

    func ask(_ question: PresenceQuestion, endedBy end: PromptEnd) throws(PresenceRefusal) -> PresenceAnswer {
        var refusal = PresenceRefusal.promptUnavailable("no agent shows the prompts of this program")
        for agent in candidates {
            guard let answer = try agent.answer(to: question, for: caller, endedBy: end) else { continue }
            switch answer {
            case .secret(let secret):
                do throws(KeychainFailure) { return .secret(try secret.copy()) } catch { throw .failed(error.reason) }
            case .empty: return .empty
            // Another one may have a display.
            case .refused(.promptUnavailable(let reason)): refusal = PresenceRefusal.promptUnavailable(reason).sanitized
            case .refused(let refusal): throw refusal.sanitized
            }
        }
        throw refusal
    }
}

extension PresenceRefusal {
    /// The refusal without what could change the log of the program that called.
    fileprivate var sanitized: PresenceRefusal {
        switch self {
        case .canceled, .timedOut: self
        case .promptUnavailable(let reason): .promptUnavailable(Self.sanitized(reason))
        case .failed(let reason): .failed(Self.sanitized(reason))
        }
    }

    private static func sanitized(_ reason: String) -> String { SanitizedText.line(reason, byteLimit: 200) }
}
