// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The processes whose prompts an agent shows, all of them of its user.
package enum AgentScope: UInt8, Sendable {
    case allProcesses = 0
    /// The agent is a thread of the program.
    case ownProcess = 1
    /// The program has started the agent. keychaind finds out which process that is: an agent could name any other, and come before its own agent.
    case parentProcess = 2
}

/// What an agent has heard from the person.
package enum PromptAnswer: Sendable {
    /// The text as it was typed.
    case secret(SharedSecretBytes)
    case empty
    case refused(PresenceRefusal)
}

extension MessageWriter {
    mutating func write(_ question: PresenceQuestion) {
        switch question.secret {
        case .passcode: write(0 as UInt8)
        case .applicationPassword: write(1 as UInt8)
        case .newApplicationPassword: write(2 as UInt8)
        case .fingerprint: write(3 as UInt8)
        case .passcodeOrFingerprint: write(4 as UInt8)
        }
        write(question.requester)
        write(question.purpose)
        write(ifPresent: question.reason) { writer, text in writer.write(text) }
        write(ifPresent: question.cancelTitle) { writer, text in writer.write(text) }
        write(ifPresent: question.triesLeft) { writer, count in writer.write(UInt32(clamping: count)) }
        write(question.timeoutSeconds)
    }

    mutating func write(_ answer: PromptAnswer) {
        switch answer {
        case .secret(let secret):
            write(0 as UInt8)
            write(secret.secret)
        case .empty: write(1 as UInt8)
        case .refused(.promptUnavailable(let reason)):
            write(2 as UInt8)
            write(reason)
        case .refused(.canceled): write(3 as UInt8)
        case .refused(.timedOut): write(4 as UInt8)
        case .refused(.failed(let reason)):
            write(5 as UInt8)
            write(reason)
        }
    }
}

extension MessageReader {
    mutating func readQuestion() throws(MalformedMessage) -> PresenceQuestion {
        let secret: PresenceQuestion.Secret
        switch try readByte() {
        case 0: secret = .passcode
        case 1: secret = .applicationPassword
        case 2: secret = .newApplicationPassword
        case 3: secret = .fingerprint
        case 4: secret = .passcodeOrFingerprint
        default: throw MalformedMessage()
        }
        return PresenceQuestion(
            secret: secret, requester: try readText(), purpose: try readText(),
            reason: try readIfPresent { reader throws(MalformedMessage) in try reader.readText() },
            cancelTitle: try readIfPresent { reader throws(MalformedMessage) in try reader.readText() },
            triesLeft: try readIfPresent { reader throws(MalformedMessage) in Int(try reader.readUInt32()) },
            timeoutSeconds: try readUInt32())
    }

    mutating func readAnswer() throws(MalformedMessage) -> PromptAnswer {
        switch try readByte() {
        case 0: return .secret(try readPasscode())
        case 1: return .empty
        case 2: return .refused(.promptUnavailable(try readText()))
        case 3: return .refused(.canceled)
        case 4: return .refused(.timedOut)
        case 5: return .refused(.failed(try readText()))
        default: throw MalformedMessage()
        }
    }
}
