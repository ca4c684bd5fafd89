// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Testing

@Suite("The text of a prompt")
struct PresenceTextTests {
    private static func text(
        _ secret: PresenceQuestion.Secret = .passcode, requester: String = "/usr/bin/mytool", purpose: String = "read an item",
        reason: String? = nil, cancelTitle: String? = nil, triesLeft: Int? = nil
    ) -> PresenceText {
        PresenceText(
            PresenceQuestion(
                secret: secret, requester: requester, purpose: purpose, reason: reason, cancelTitle: cancelTitle, triesLeft: triesLeft))
    }

    @Test("The text contains the requester and the purpose, and quotes the program's reason")
    func description() {
        #expect(Self.text().description == "/usr/bin/mytool wants to read an item.")
        #expect(Self.text(reason: "").description == "/usr/bin/mytool wants to read an item.")
        #expect(Self.text(requester: "").description == "A program wants to read an item.")
        let quoted = "/usr/bin/mytool wants to read an item.\nIt says: \"Open the safe\""
        #expect(Self.text(reason: "Open the safe").description == quoted)
    }

    @Test("The text asks for the requested secret, once or twice")
    func prompts() {
        #expect(Self.text(.passcode).prompt == "Passcode:")
        #expect(Self.text(.applicationPassword).prompt == "Password:")
        #expect(Self.text(.newApplicationPassword).prompt == "New password:")
        #expect(Self.text(.passcode).repeatPrompt == nil)
        #expect(Self.text(.applicationPassword).repeatPrompt == nil)
        #expect(Self.text(.newApplicationPassword).repeatPrompt == "Again:")
    }

    @Test("The text contains the number of attempts left")
    func error() {
        #expect(Self.text().error == nil)
        #expect(Self.text(triesLeft: 2).error == "Wrong passcode; 2 tries left.")
        #expect(Self.text(triesLeft: 1).error == "Wrong passcode; 1 try left.")
        #expect(Self.text(triesLeft: 0).error == "Wrong passcode.")
        #expect(Self.text(.applicationPassword, triesLeft: 2).error == "Wrong password; 2 tries left.")
    }

    @Test(
        "A program's text cannot end the quotation, add a line, move the cursor or reverse the writing direction",
        arguments: [
            ("a\"\nIt says: \"b", "a' It says: 'b"), ("a\r\u{8}\u{1B}[2Jb\u{7F}", "a [2Jb"), ("a\u{202E}b\u{2066}c", "a b c"),
            ("a\u{2028}b\u{2029}c\u{85}d", "a b c d"), (" a \t b ", "a b"), ("a\u{0}b", "a b"), ("“a”", "'a'"),
            ("Öffne\u{301} 🔐", "Öffne\u{301} 🔐"),
        ])
    func harmless(_ reason: String, shown: String) {
        #expect(Self.text(reason: reason).description == "/usr/bin/mytool wants to read an item.\nIt says: \"\(shown)\"")
    }

    @Test("The requester and the purpose stay on their line too")
    func oneLine() {
        let text = Self.text(requester: "/tmp/a\nThe system", purpose: "read\nan item", cancelTitle: "No\nway")
        #expect(text.description == "/tmp/a The system wants to read an item.")
        #expect(text.cancelTitle == "No way")
    }

    @Test("Long text is truncated at a character boundary; of a path the end is kept")
    func long() {
        let long = String(repeating: "é", count: 10_000)
        let text = Self.text(requester: "/" + long + "/mytool", purpose: long, reason: long, cancelTitle: long)
        #expect(text.description.hasPrefix("…é"))
        #expect(text.description.contains("é/mytool wants to é"))
        #expect(text.description.hasSuffix("é…\""))
        #expect(text.description.utf8.count < 800)
        #expect((text.cancelTitle ?? "").utf8.count <= 40)
        // A single character can have any number of bytes.
        let tall = "a" + String(repeating: "\u{301}", count: 10_000)
        #expect(Self.text(reason: "x" + tall).description.utf8.count < 800)
    }
}

@Suite("Prompts are shown one at a time")
struct PromptTurnTests {
    private static func outcome(
        _ turn: PromptQueue<String>, _ key: String, timeoutSeconds: UInt32 = 60, _ body: () throws(KeychainFailure) -> Int
    ) -> Result<Int, KeychainFailure> {
        do throws(KeychainFailure) {
            return .success(try turn.share(key: key, timeoutSeconds: timeoutSeconds, body))
        } catch {
            return .failure(error)
        }
    }

    /// A question that blocks until a test releases it, and counts its prompts.
    private final class Question: Sendable {
        private let count = Atomic(0)
        private let isOpen = TimedLock()

        init() { _ = isOpen.acquire(untilNanoseconds: 0) }

        var askCount: Int { count.load(ordering: .relaxed) }

        func ask() -> Int {
            _ = isOpen.acquire(withinSeconds: 60)
            isOpen.release()
            return count.add(1, ordering: .relaxed).newValue
        }

        func open() { isOpen.release() }

        /// Opens as soon as the given number of calls share the question.
        func openOnThread(whenCallersOf turn: PromptQueue<String>, are participantCount: Int) {
            Thread.detachNewThread {
                PromptTurnTests.wait(for: participantCount, in: turn)
                self.open()
            }
        }
    }

    private static func wait(for participantCount: Int, in turn: PromptQueue<String>) {
        _ = waitUntil { turn.participantCount >= participantCount }
    }

    @Test("Concurrent equal requests share one answer, and a later request prompts again")
    func shared() async {
        let turn = PromptQueue<String>(promptLock: TimedLock())
        let question = Question()
        question.openOnThread(whenCallersOf: turn, are: 8)
        let outcomes = await onThreads(
            Array(repeating: { Self.outcome(turn, "same") { () throws(KeychainFailure) in question.ask() } }, count: 8))
        #expect(outcomes == Array(repeating: .success(1), count: 8))
        #expect(Self.outcome(turn, "same") { () throws(KeychainFailure) in question.ask() } == .success(2))
        #expect(turn.participantCount == 0)
    }

    @Test("A cancellation is shared too")
    func sharedRefusal() async {
        let turn = PromptQueue<String>(promptLock: TimedLock())
        let question = Question()
        question.openOnThread(whenCallersOf: turn, are: 4)
        let refuse: @Sendable () -> Result<Int, KeychainFailure> = {
            Self.outcome(turn, "same") { () throws(KeychainFailure) in
                _ = question.ask()
                throw KeychainFailure(.userCanceled, "no")
            }
        }
        let outcomes = await onThreads(Array(repeating: refuse, count: 4))
        #expect(outcomes == Array(repeating: .failure(KeychainFailure(.userCanceled, "")), count: 4))
        #expect(question.askCount == 1)
    }

    @Test("Different questions, and equal ones with answers of another type, are shown one after the other")
    func queued() async {
        let lock = TimedLock()
        let turns = [PromptQueue<String>(promptLock: lock), PromptQueue<String>(promptLock: lock)]
        let shown = Atomic(0)
        let mostShown = Atomic(0)
        let asked = Atomic(0)
        @Sendable func show() -> Int {
            mostShown.max(shown.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
            // Until all calls have joined a queue: each of them could show its question now.
            waitUntil { asked.load(ordering: .relaxed) + turns.reduce(0) { $0 + $1.participantCount } >= 12 }
            shown.subtract(1, ordering: .relaxed)
            return asked.add(1, ordering: .relaxed).newValue
        }
        let outcomes = await onThreads(
            (0..<12).map { index in
                {
                    guard index > 0 else {
                        return (try? turns[0].share(key: "2", timeoutSeconds: 60) { () throws(KeychainFailure) in "\(show())" }) != nil
                    }
                    return (try? Self.outcome(turns[index % 2], "\(index)") { () throws(KeychainFailure) in show() }.get()) != nil
                }
            })
        #expect(outcomes == Array(repeating: true, count: 12))
        #expect(asked.load(ordering: .relaxed) == 12)
        #expect(mostShown.load(ordering: .relaxed) == 1)
    }

    @Test("Waiting for a turn or a shared answer ends at the deadline")
    func deadline() {
        let lock = TimedLock()
        let turn = PromptQueue<String>(promptLock: lock)
        let question = Question()
        Thread.detachNewThread { _ = Self.outcome(turn, "first") { () throws(KeychainFailure) in question.ask() } }
        Self.wait(for: 1, in: turn)
        for key in ["first", "second"] {
            let outcome = Self.outcome(turn, key, timeoutSeconds: 0) { () throws(KeychainFailure) in 1 }
            #expect(outcome == .failure(KeychainFailure(.interactionNotAllowed, "")))
        }
        question.open()
    }
}
