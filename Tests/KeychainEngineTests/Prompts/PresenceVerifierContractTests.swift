// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTesting
import Testing

@Suite("Whatever asks a person keeps the promises of it")
struct PresenceVerifierContractTests {
    /// Keeps the program's folder for as long as the verifier.
    private struct Odd: PresenceVerifier {
        let pinentry: OddPinentry
        let verifier: any PresenceVerifier

        var canAsk: Bool { verifier.canAsk }

        func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer { try verifier.ask(question) }
    }

    private static func pinentry(_ reaction: ScriptedPresence.Reaction) throws -> OddPinentry {
        switch reaction {
        case .type(let text):
            // Every byte escaped, and no line longer than it may be.
            let data = text.utf8.map { byte in "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16) }
            let lines = stride(from: 0, to: data.count, by: 300).map { "say D " + data[$0..<min($0 + 300, data.count)].joined() }
            return try OddPinentry((["say OK", "until GETPIN", "say S PIN_REPEATED"] + lines + ["say OK"]).joined(separator: "\n"))
        case .cancel: return try OddPinentry("say OK", "until GETPIN", "say ERR 83886179")
        case .timeOut: return try OddPinentry("say OK", "until GETPIN", "sleep 600000")
        case .nobodyThere: return try OddPinentry("say OK", "until GETPIN", "say ERR 83918950")
        case .fail, .decide: return try OddPinentry("say OK", "until GETPIN", "die")
        }
    }

    @Test("A pinentry program")
    func pinentry() throws {
        let violations = try PresenceVerifierContract.violations { reaction in
            let pinentry = try Self.pinentry(reaction)
            let environment = PromptEnvironment(["DISPLAY": ":nowhere"])
            return Odd(pinentry: pinentry, verifier: SystemPresenceVerifier(.program(pinentry.path), environment: environment))
        }
        #expect(violations == [])
    }

    @Test("The script of a test")
    func scripted() throws {
        #expect(try PresenceVerifierContract.violations { ScriptedPresence($0) } == [])
        #expect(try PresenceVerifierContract.violations { reaction in ScriptedPresence(.decide { _ in reaction }) } == [])
    }

    @Test("One that cuts answers off, hides a refusal or gives nothing typed as a secret is found out")
    func broken() throws {
        for reaction in [ScriptedPresence.Reaction.cancel, .type("12345"), .type(""), .nobodyThere, .timeOut] {
            #expect(try PresenceVerifierContract.violations { _ in ScriptedPresence(reaction) } != [])
        }
    }

    @Test("A script is followed in order, tells what was asked, and ends with nobody there")
    func order() throws {
        let person = ScriptedPresence(.type("wrong"), .cancel)
        person.then(.timeOut)
        let questions = [3, 2, 1, 0].map { PresenceQuestion.sample(triesLeft: $0) }
        #expect(person.canAsk)
        #expect(questions.map { OddPinentry.outcome(of: $0, person) } == [.text("wrong"), .canceled, .timedOut, .nobodyToAsk])
        #expect(person.questions == questions)
        #expect(!person.canAsk)
        #expect(person.remainingCount == 0)
        #expect(!ScriptedPresence(.nobodyThere, .cancel).canAsk)
    }
}
