// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
package import KeychainCore

/// What every `PresenceVerifier` promises, as checks that any implementation can be put through.
package struct PresenceVerifierContract {
    private let verifier: (ScriptedPresenceVerifier.Reaction) throws -> any PresenceVerifier
    private var violations: [String] = []

    /// Checks verifiers, each before a person who reacts in one way, once or twice.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    /// - Throws: What `verifier` throws.
    package static func violations(of verifier: (ScriptedPresenceVerifier.Reaction) throws -> any PresenceVerifier) throws -> [String] {
        try withoutActuallyEscaping(verifier) { verifier in
            var contract = PresenceVerifierContract(verifier: verifier)
            try contract.checkAnswers()
            try contract.checkRefusals()
            return contract.violations
        }
    }

    private init(verifier: @escaping (ScriptedPresenceVerifier.Reaction) throws -> any PresenceVerifier) {
        self.verifier = verifier
    }

    private mutating func checkAnswers() throws {
        for text in ["12345", "a", "50% of\tit\\", "%41", "Größe 🔐", " ends with a space ", String(repeating: "x", count: 1_024)] {
            for secret in [PresenceQuestion.Secret.passcode, .applicationPassword, .newApplicationPassword] {
                let verifier = try verifier(.type(text))
                if !verifier.canAsk { violations.append("somebody is there, and nobody can be asked") }
                let outcome = outcome(of: question(secret), verifier)
                if outcome != "typed \(Array(text.utf8))" {
                    violations.append("\(secret): what was typed does not come back: \(text.prefix(20)): \(outcome.prefix(60))")
                }
            }
        }
        let outcome = outcome(of: question(), try verifier(.type("")))
        if outcome != "empty" { violations.append("nothing typed is not empty: \(outcome)") }
        let hostile = String(repeating: "%\n\r\u{0}\u{1B}\"…", count: 5_000)
        let long = PresenceQuestion(
            secret: .passcode, requester: hostile, purpose: hostile, reason: hostile, cancelTitle: hostile, triesLeft: 1)
        if self.outcome(of: long, try verifier(.type("x"))) != "typed [120]" { violations.append("a long question finds no answer") }
    }

    private mutating func checkRefusals() throws {
        let expectations: [(ScriptedPresenceVerifier.Reaction, String)] = [
            (.cancel, "canceled"), (.timeOut, "timedOut"), (.promptUnavailable, "promptUnavailable"), (.fail("it broke"), "failed"),
        ]
        for (reaction, expected) in expectations {
            let verifier = try verifier(reaction)
            let outcome = outcome(of: question(timeoutSeconds: 4), verifier)
            if outcome != expected { violations.append("\(expected) is told as \(outcome)") }
        }
    }

    private func question(_ secret: PresenceQuestion.Secret = .passcode, timeoutSeconds: UInt32 = 60) -> PresenceQuestion {
        PresenceQuestion(
            secret: secret, requester: "/usr/bin/mytool", purpose: "read an item", reason: "Open the safe", timeoutSeconds: timeoutSeconds)
    }

    private func outcome(of question: PresenceQuestion, _ verifier: any PresenceVerifier) -> String {
        do throws(PresenceRefusal) {
            switch try verifier.ask(question) {
            case .empty: return "empty"
            // The bytes are the contract's own, and no secret.
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

/// What every `DeviceProtector` promises, as checks that any implementation can be put through.
package enum DeviceProtectorContract {
    /// Checks a protector that has the secret of `storeID`.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violations(of protector: any DeviceProtector, storeID: StoreID) -> [String] {
        var violations: [String] = []
        do throws(KeychainFailure) {
            let secret = try bytes(protector.deviceSecret(for: storeID))
            if secret.count != DeviceSecret.byteCount { violations.append("the secret has \(secret.count) bytes") }
            if Set(secret).count < 2 { violations.append("the secret is no random one") }
            if try bytes(protector.deviceSecret(for: storeID)) != secret { violations.append("a second call gives another secret") }
        } catch {
            violations.append("the secret cannot be had: \(error)")
        }
        let location = protector.location(for: storeID)
        if location.isEmpty { violations.append("nobody learns where the secret is kept") }
        if protector.location(for: storeID) != location { violations.append("the secret is kept somewhere else at the second look") }
        return violations
    }

    /// Checks a protector that has no secret of `storeID`.
    ///
    /// - Returns: As `violations(of:storeID:)`.
    package static func violationsWithoutSecret(_ protector: any DeviceProtector, storeID: StoreID) -> [String] {
        do throws(KeychainFailure) {
            _ = try protector.deviceSecret(for: storeID)
            return ["a secret is given for a store that has none"]
        } catch {
            var violations: [String] = []
            if error.status != .notAvailable { violations.append("a missing secret is answered with \(error.status.rawValue)") }
            if !error.reason.contains(protector.location(for: storeID)) {
                violations.append("nobody learns what is missing: \(error.reason)")
            }
            return violations
        }
    }

    private static func bytes(_ secret: consuming SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure, to be compared.
        unsafe secret.withBytes { unsafe Array($0) }
    }
}

/// What every `WallClock` promises, as checks that any implementation can be put through.
package enum WallClockContract {
    /// Checks a clock that nobody has moved.
    ///
    /// - Returns: A sentence for each promise that was broken; empty when all were kept.
    package static func violations(of clock: any WallClock) -> [String] {
        let seconds = clock.now()
        guard seconds.isFinite else { return ["the time is \(seconds)"] }
        // Another unit, or another beginning of time, is farther off than any clock that is merely wrong.
        let difference = abs(seconds - Date().timeIntervalSinceReferenceDate)
        return difference < 24 * 60 * 60 ? [] : ["the time is \(difference) seconds off: it is counted in seconds since 2001"]
    }
}
#endif
