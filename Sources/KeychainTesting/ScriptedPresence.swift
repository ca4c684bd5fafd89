// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import Synchronization

/// A person who does what a test says, and tells what they were asked.
///
/// Answers are used up in order. When there is none left, nobody is there.
package final class ScriptedPresence: PresenceVerifier {
    /// What the person does when asked.
    package enum Reaction: Sendable {
        /// Types this; nothing at all comes back as an empty answer.
        case type(String)
        case cancel
        case timeOut
        case nobodyThere
        case fail(String)
        /// Decides when the question is there; a test can hold it up in the meantime.
        case decide(@Sendable (PresenceQuestion) -> Reaction)
    }

    private struct State {
        var reactions: ArraySlice<Reaction>
        var questions: [PresenceQuestion] = []
    }

    private let state: Mutex<State>

    package init(_ reactions: Reaction...) {
        state = Mutex(State(reactions: reactions[...]))
    }

    /// What the person does after everything they were told before.
    package func then(_ reactions: Reaction...) {
        state.withLock { $0.reactions += reactions }
    }

    /// Every question so far, in order, those that found nobody too.
    package var questions: [PresenceQuestion] { state.withLock { $0.questions } }

    /// How many answers are left.
    package var remainingCount: Int { state.withLock { $0.reactions.count } }

    /// Whether the next question finds somebody.
    package var canAsk: Bool {
        state.withLock { state in
            switch state.reactions.first {
            case nil, .nobodyThere: false
            default: true
            }
        }
    }

    package func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        var reaction = state.withLock { state in
            state.questions.append(question)
            return state.reactions.popFirst() ?? .nobodyThere
        }
        while true {
            switch reaction {
            // Outside the lock: others may be asked meanwhile.
            case .decide(let decide): reaction = decide(question)
            case .type(let text): return try Self.answer(text)
            case .cancel: throw .canceled
            case .timeOut: throw .timedOut
            case .nobodyThere: throw .nobodyToAsk("the script says that nobody is there")
            case .fail(let why): throw .failed(why)
            }
        }
    }

    private static func answer(_ text: String) throws(PresenceRefusal) -> PresenceAnswer {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { return .empty }
        do throws(KeychainFailure) {
            // The text is the test's, and no secret; as many bytes as the buffer has.
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
#endif
