// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Testing

@Suite("A question in words")
struct PresenceTextTests {
    private static func text(
        _ secret: PresenceQuestion.Secret = .passcode, requester: String = "/usr/bin/mytool", purpose: String = "read an item",
        reason: String? = nil, cancelTitle: String? = nil, triesLeft: Int? = nil
    ) -> PresenceText {
        PresenceText(
            PresenceQuestion(
                secret: secret, requester: requester, purpose: purpose, reason: reason, cancelTitle: cancelTitle, triesLeft: triesLeft))
    }

    @Test("It says who asks and what for, and quotes what the program says")
    func description() {
        #expect(Self.text().description == "/usr/bin/mytool wants to read an item.")
        #expect(Self.text(reason: "").description == "/usr/bin/mytool wants to read an item.")
        #expect(Self.text(requester: "").description == "A program wants to read an item.")
        let quoted = "/usr/bin/mytool wants to read an item.\nIt says: \"Open the safe\""
        #expect(Self.text(reason: "Open the safe").description == quoted)
    }

    @Test("It asks for what is wanted, once or twice")
    func prompts() {
        #expect(Self.text(.passcode).prompt == "Passcode:")
        #expect(Self.text(.applicationPassword).prompt == "Password:")
        #expect(Self.text(.newApplicationPassword).prompt == "New password:")
        #expect(Self.text(.passcode).repeatPrompt == nil)
        #expect(Self.text(.applicationPassword).repeatPrompt == nil)
        #expect(Self.text(.newApplicationPassword).repeatPrompt == "Again:")
    }

    @Test("It says how often it can be tried")
    func error() {
        #expect(Self.text().error == nil)
        #expect(Self.text(triesLeft: 2).error == "Wrong passcode; 2 tries left.")
        #expect(Self.text(triesLeft: 1).error == "Wrong passcode; 1 try left.")
        #expect(Self.text(triesLeft: 0).error == "Wrong passcode.")
        #expect(Self.text(.applicationPassword, triesLeft: 2).error == "Wrong password; 2 tries left.")
    }

    @Test(
        "A program cannot end the quotation, add a line, move the cursor or turn the writing around",
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

    @Test("What is long is cut at a character: of a path the end stays")
    func long() {
        let long = String(repeating: "é", count: 10_000)
        let text = Self.text(requester: "/" + long + "/mytool", purpose: long, reason: long, cancelTitle: long)
        #expect(text.description.hasPrefix("…é"))
        #expect(text.description.contains("é/mytool wants to é"))
        #expect(text.description.hasSuffix("é…\""))
        #expect(text.description.utf8.count < 800)
        #expect((text.cancelTitle ?? "").utf8.count <= 40)
        // One character may be as long as one likes.
        let tall = "a" + String(repeating: "\u{301}", count: 10_000)
        #expect(Self.text(reason: "x" + tall).description.utf8.count < 800)
    }
}
