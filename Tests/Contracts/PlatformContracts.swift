// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
package import KeychainCore
package import KeychainTesting

/// The rules that every `PresencePrompter` follows, as checks.
package struct PresencePrompterContract {
    private let prompter: (ScriptedPresencePrompter.Reaction) throws -> any PresencePrompter
    private var violations: [String] = []

    /// Checks verifiers, each with a simulated person who reacts in one way.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    /// - Throws: The errors of `prompter`.
    package static func violations(of prompter: (ScriptedPresencePrompter.Reaction) throws -> any PresencePrompter) throws -> [String] {
        try withoutActuallyEscaping(prompter) { prompter in
            var contract = PresencePrompterContract(prompter: prompter)
            try contract.checkAnswers()
            try contract.checkRefusals()
            return contract.violations
        }
    }

    private init(prompter: @escaping (ScriptedPresencePrompter.Reaction) throws -> any PresencePrompter) {
        self.prompter = prompter
    }

    private mutating func checkAnswers() throws {
        for text in ["12345", "a", "50% of\tit\\", "%41", "Größe 🔐", " ends with a space ", String(repeating: "x", count: 1_024)] {
            for secret in [PresenceQuestion.Secret.passcode, .applicationPassword, .newApplicationPassword] {
                let prompter = try prompter(.type(text))
                if !prompter.canAsk { violations.append("a person is present, but `canAsk` is false") }
                let outcome = outcome(of: question(secret), prompter)
                if outcome != "typed \(Array(text.utf8))" {
                    violations.append("\(secret): the answer is not the typed text: \(text.prefix(20)): \(outcome.prefix(60))")
                }
            }
        }
        let outcome = outcome(of: question(), try prompter(.type("")))
        if outcome != "empty" { violations.append("an empty answer is not reported as empty: \(outcome)") }
        let hostile = String(repeating: "%\n\r\u{0}\u{1B}\"…", count: 5_000)
        let long = PresenceQuestion(
            secret: .passcode, requester: hostile, purpose: hostile, reason: hostile, cancelTitle: hostile, triesLeft: 1)
        if self.outcome(of: long, try prompter(.type("x"))) != "typed [120]" { violations.append("a long question gets no answer") }
    }

    private mutating func checkRefusals() throws {
        let expectations: [(ScriptedPresencePrompter.Reaction, String)] = [
            (.cancel, "canceled"), (.timeOut, "timedOut"), (.promptUnavailable, "promptUnavailable"), (.fail("it broke"), "failed"),
        ]
        for (reaction, expected) in expectations {
            let prompter = try prompter(reaction)
            let outcome = outcome(of: question(timeoutSeconds: 4), prompter)
            if outcome != expected { violations.append("\(expected) is reported as \(outcome)") }
        }
    }

    private func question(_ secret: PresenceQuestion.Secret = .passcode, timeoutSeconds: UInt32 = 60) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: "/usr/bin/mytool", purpose: "read an item", reason: "Open the safe", timeoutSeconds: timeoutSeconds)
    }

    private func outcome(of question: PresenceQuestion, _ prompter: any PresencePrompter) -> String {
        do throws(PresenceRefusal) {
            switch try prompter.ask(question) {
            case .empty: return "empty"
            // The bytes come from this contract and are not secret.
            case .secret(let secret): return unsafe secret.withBytes { unsafe "typed \(Array($0))" }
            }
        } catch {
            switch error {
            case .canceled: return "canceled"
            case .timedOut: return "timedOut"
            case .promptUnavailable(let why): return why.isEmpty ? "promptUnavailable without a reason" : "promptUnavailable"
            case .failed(let why): return why.isEmpty ? "failed without a reason" : "failed"
            }
        }
    }
}

/// The rules that every `DeviceProtector` follows, as checks.
package enum DeviceProtectorContract {
    /// Checks a protector that has a secret for `storeID`.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    package static func violations(of protector: any DeviceProtector, storeID: StoreID) -> [String] {
        var violations: [String] = []
        do throws(KeychainFailure) {
            let secret = try bytes(protector.deviceSecret(for: storeID))
            if secret.count != DeviceSecret.byteCount { violations.append("the secret has \(secret.count) bytes") }
            if Set(secret).count < 2 { violations.append("the secret is not random") }
            if try bytes(protector.deviceSecret(for: storeID)) != secret { violations.append("a second call returns another secret") }
        } catch {
            violations.append("the secret is not available: \(error)")
        }
        let location = protector.location(for: storeID)
        if location.isEmpty { violations.append("the location of the secret is empty") }
        if protector.location(for: storeID) != location { violations.append("the location of the secret changes between two calls") }
        return violations
    }

    /// Checks a protector that has no secret for `storeID`.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    package static func violationsWithoutSecret(_ protector: any DeviceProtector, storeID: StoreID) -> [String] {
        do throws(KeychainFailure) {
            _ = try protector.deviceSecret(for: storeID)
            return ["a secret is returned for a store that has none"]
        } catch {
            var violations: [String] = []
            if error.status != .notAvailable { violations.append("a missing secret is reported as \(error.status.rawValue)") }
            // The failure of a secret that is not in a file has no path.
            if error.subject == nil { violations.append("the failure has no subject") }
            if let path = error.path, path != protector.location(for: storeID) {
                violations.append("the failure is about \(path), which is not the location of the missing secret")
            }
            return violations
        }
    }

    private static func bytes(_ secret: consuming SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure, for comparison.
        unsafe secret.withBytes { unsafe Array($0) }
    }
}

/// The rule that every `WallClock` follows, as a check.
package enum WallClockContract {
    /// Checks a clock that a test has not changed.
    ///
    /// - Returns: A sentence for each violation; empty if there is none.
    package static func violations(of clock: any WallClock) -> [String] {
        let seconds = clock.now()
        guard seconds.isFinite else { return ["the time is \(seconds)"] }
        // A clock with another unit or reference date differs by more than a day.
        let difference = abs(seconds - Date().timeIntervalSinceReferenceDate)
        return difference < 24 * 60 * 60 ? [] : ["the time is \(difference) seconds off; it must be in seconds since 2001-01-01"]
    }
}
#endif
