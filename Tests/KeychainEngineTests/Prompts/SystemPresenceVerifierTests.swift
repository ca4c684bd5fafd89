// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Which way a person is asked")
struct SystemPresenceVerifierTests {
    private static let display = PromptEnvironment(["DISPLAY": ":nowhere"])

    private static func answering(_ text: String) throws -> OddPinentry {
        try OddPinentry("say OK", "until GETPIN", "say D \(text)", "say OK")
    }

    @Test("A program that is named is used, with a display and without")
    func named() throws {
        let pinentry = try Self.answering("named")
        for environment in [Self.display, PromptEnvironment()] {
            let verifier = SystemPresenceVerifier(.program(pinentry.path), environment: environment, standardPaths: [])
            #expect(verifier.canAsk)
            #expect(OddPinentry.outcome(of: .sample(), verifier) == .text("named"))
        }
    }

    @Test("A program that is named and fails is not replaced by another")
    func namedAndMissing() throws {
        let other = try Self.answering("other")
        let verifier = SystemPresenceVerifier(.program("/nowhere/pinentry"), environment: Self.display, standardPaths: [other.path])
        #expect(!verifier.canAsk)
        #expect(OddPinentry.outcome(of: .sample(), verifier) == .failed)
        #expect(other.requests == [])
    }

    @Test("Where there is a display, the first program of the list that exists is used", arguments: ["DISPLAY", "WAYLAND_DISPLAY"])
    func listed(_ variable: String) throws {
        let (first, second) = (try Self.answering("first"), try Self.answering("second"))
        let environment = PromptEnvironment([variable: "somewhere"])
        let paths = ["/nowhere/pinentry", first.path, second.path]
        let verifier = SystemPresenceVerifier(.automatic, environment: environment, standardPaths: paths)
        #expect(verifier.canAsk)
        #expect(OddPinentry.outcome(of: .sample(), verifier) == .text("first"))
        #expect(second.requests == [])
    }

    @Test("What the person says to a program of the list is final", arguments: [("99", OddPinentry.Outcome.canceled)])
    func refusal(_ number: String, outcome: OddPinentry.Outcome) throws {
        let pinentry = try OddPinentry("say OK", "until GETPIN", "say ERR \(number)")
        let verifier = SystemPresenceVerifier(.automatic, environment: Self.display, standardPaths: [pinentry.path])
        #expect(OddPinentry.outcome(of: .sample(), verifier) == outcome)
    }

    @Test("Every standard place is an absolute path")
    func places() {
        #expect(PinentrySelection.standardPaths.first == "/usr/bin/pinentry")
        #expect(PinentrySelection.standardPaths.allSatisfy { $0.hasPrefix("/usr/bin/pinentry") })
    }

    @Test("Without a display the question is asked on the terminal", arguments: [nil, ""] as [String?])
    func terminal(_ variable: String?) throws {
        let job = try TerminalJob(pinentry: variable, isPinentrySet: variable != nil, expecting: "12345")
        try job.wait(for: "Passcode: ")
        job.type("12345\n")
        #expect(try job.report().prefix(2) == ["can ask true", "as expected"])
    }

    @Test(
        "With a display where nothing shows, the question is asked on the terminal; not so what the person has said no to",
        arguments: [("say OK\nuntil GETPIN\nsay ERR 83918950", true), ("die", true), ("say OK\nuntil GETPIN\nsay ERR 99", false)])
    func fallback(_ steps: String, isAskedAgain: Bool) throws {
        let pinentry = try OddPinentry(steps)
        let job = try TerminalJob(isPinentrySet: false, listed: pinentry.path, expecting: "12345", environment: ["DISPLAY": ":nowhere"])
        if isAskedAgain {
            try job.wait(for: "Passcode: ")
            job.type("12345\n")
        }
        #expect(try job.report().prefix(2) == ["can ask true", isAskedAgain ? "as expected" : "canceled"])
    }

    @Test("A relative KEYCHAIN_PINENTRY is a failure, not a program that happens to be found")
    func relative() throws {
        let job = try TerminalJob(pinentry: "pinentry-tty")
        #expect(try job.report().contains { $0.contains("KEYCHAIN_PINENTRY") })
    }
}
