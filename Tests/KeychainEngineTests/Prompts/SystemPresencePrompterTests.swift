// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("Choice of the prompt")
struct SystemPresencePrompterTests {
    private static let display = PromptEnvironment(["DISPLAY": ":nowhere"])

    private static func answering(_ text: String) throws -> MisbehavingPinentry {
        try MisbehavingPinentry("say OK", "until GETPIN", "say D \(text)", "say OK")
    }

    @Test("A configured program is used with and without a display")
    func named() throws {
        let pinentry = try Self.answering("named")
        for environment in [Self.display, PromptEnvironment()] {
            let prompter = SystemPresencePrompter(.program(pinentry.path), environment: environment, standardPaths: [])
            #expect(prompter.canAsk)
            #expect(MisbehavingPinentry.outcome(of: .sample(), prompter) == .text("named"))
        }
    }

    @Test("If a configured program fails, no other program is used")
    func namedAndMissing() throws {
        let other = try Self.answering("other")
        let prompter = SystemPresencePrompter(.program("/nowhere/pinentry"), environment: Self.display, standardPaths: [other.path])
        #expect(!prompter.canAsk)
        #expect(MisbehavingPinentry.outcome(of: .sample(), prompter) == .failed)
        #expect(other.requests == [])
    }

    @Test("With a display, the first existing program of the list is used", arguments: ["DISPLAY", "WAYLAND_DISPLAY"])
    func listed(_ variable: String) throws {
        let (first, second) = (try Self.answering("first"), try Self.answering("second"))
        let environment = PromptEnvironment([variable: "somewhere"])
        let paths = ["/nowhere/pinentry", first.path, second.path]
        let prompter = SystemPresencePrompter(.automatic, environment: environment, standardPaths: paths)
        #expect(prompter.canAsk)
        #expect(MisbehavingPinentry.outcome(of: .sample(), prompter) == .text("first"))
        #expect(second.requests == [])
    }

    @Test("The user's answer in a program of the list is final", arguments: [("99", MisbehavingPinentry.Outcome.canceled)])
    func refusal(_ number: String, outcome: MisbehavingPinentry.Outcome) throws {
        let pinentry = try MisbehavingPinentry("say OK", "until GETPIN", "say ERR \(number)")
        let prompter = SystemPresencePrompter(.automatic, environment: Self.display, standardPaths: [pinentry.path])
        #expect(MisbehavingPinentry.outcome(of: .sample(), prompter) == outcome)
    }

    @Test("Every standard path is absolute")
    func places() {
        #expect(PinentrySelection.standardPaths.first == "/usr/bin/pinentry")
        #expect(PinentrySelection.standardPaths.allSatisfy { $0.hasPrefix("/usr/bin/pinentry") })
    }

    @Test("Without a display the prompt is shown on the terminal", arguments: [nil, ""] as [String?])
    func terminal(_ variable: String?) throws {
        let job = try TerminalJob(pinentry: variable, isPinentrySet: variable != nil, expecting: "12345")
        try job.wait(for: "Passcode: ")
        job.type("12345\n")
        #expect(try job.report().prefix(2) == ["can ask true", "as expected"])
    }

    @Test(
        "If the display cannot be used, the prompt is shown on the terminal, but not after the user canceled",
        arguments: [("say OK\nuntil GETPIN\nsay ERR 83918950", true), ("die", true), ("say OK\nuntil GETPIN\nsay ERR 99", false)])
    func fallback(_ steps: String, isAskedAgain: Bool) throws {
        let pinentry = try MisbehavingPinentry(steps)
        let job = try TerminalJob(isPinentrySet: false, listed: pinentry.path, expecting: "12345", environment: ["DISPLAY": ":nowhere"])
        if isAskedAgain {
            try job.wait(for: "Passcode: ")
            job.type("12345\n")
        }
        #expect(try job.report().prefix(2) == ["can ask true", isAskedAgain ? "as expected" : "canceled"])
    }

    @Test("A relative KEYCHAIN_PINENTRY is an error and is not searched for in PATH")
    func relative() throws {
        let job = try TerminalJob(pinentry: "pinentry-tty")
        #expect(try job.report().contains { $0.contains("KEYCHAIN_PINENTRY") })
    }
}

@Suite("Every presence prompter satisfies the contract", .waitsForClock)
struct PresencePrompterContractTests {
    /// Keeps the program's folder for as long as the prompter.
    private struct Odd: PresencePrompter {
        let pinentry: MisbehavingPinentry
        let prompter: any PresencePrompter

        var canAsk: Bool { prompter.canAsk }

        func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer { try prompter.ask(question) }
    }

    private static func pinentry(_ reaction: ScriptedPresencePrompter.Reaction) throws -> MisbehavingPinentry {
        switch reaction {
        case .type(let text):
            // Every byte escaped, and no line longer than it may be.
            let data = text.utf8.map { byte in "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16) }
            let lines = stride(from: 0, to: data.count, by: 300).map { "say D " + data[$0..<min($0 + 300, data.count)].joined() }
            return try MisbehavingPinentry((["say OK", "until GETPIN", "say S PIN_REPEATED"] + lines + ["say OK"]).joined(separator: "\n"))
        case .cancel: return try MisbehavingPinentry("say OK", "until GETPIN", "say ERR 83886179")
        case .timeOut: return try MisbehavingPinentry("say OK", "until GETPIN", "sleep 600000")
        case .promptUnavailable: return try MisbehavingPinentry("say OK", "until GETPIN", "say ERR 83918950")
        case .fail, .decide: return try MisbehavingPinentry("say OK", "until GETPIN", "die")
        }
    }

    @Test("A pinentry program")
    func pinentry() throws {
        let violations = try PresencePrompterContract.violations { reaction in
            let pinentry = try Self.pinentry(reaction)
            let environment = PromptEnvironment(["DISPLAY": ":nowhere"])
            return Odd(pinentry: pinentry, prompter: SystemPresencePrompter(.program(pinentry.path), environment: environment))
        }
        #expect(violations == [])
    }

    @Test("Scripted answers")
    func scripted() throws {
        #expect(try PresencePrompterContract.violations { ScriptedPresencePrompter($0) } == [])
        #expect(try PresencePrompterContract.violations { reaction in ScriptedPresencePrompter(.decide { _ in reaction }) } == [])
    }

    @Test("A prompter that truncates answers, hides a refusal, or returns empty input as a secret fails")
    func broken() throws {
        for reaction in [ScriptedPresencePrompter.Reaction.cancel, .type("12345"), .type(""), .promptUnavailable, .timeOut] {
            #expect(try PresencePrompterContract.violations { _ in ScriptedPresencePrompter(reaction) } != [])
        }
    }

    @Test("A script answers in order, records the questions, and ends with no prompt available")
    func order() throws {
        let person = ScriptedPresencePrompter(.type("wrong"), .cancel)
        person.then(.timeOut)
        let questions = [3, 2, 1, 0].map { PresenceQuestion.sample(triesLeft: $0) }
        #expect(person.canAsk)
        #expect(
            questions.map { MisbehavingPinentry.outcome(of: $0, person) } == [.text("wrong"), .canceled, .timedOut, .promptUnavailable])
        #expect(person.questions == questions)
        #expect(!person.canAsk)
        #expect(person.remainingCount == 0)
        #expect(!ScriptedPresencePrompter(.promptUnavailable, .cancel).canAsk)
    }
}
