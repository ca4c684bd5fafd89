// SPDX-License-Identifier: Apache-2.0
import KeychainEngine
import Testing

@Suite("Requests to a pinentry program")
struct AssuanRequestTests {
    private static func line(_ text: String? = nil) -> String {
        String(decoding: AssuanRequest.line("SETDESC", text), as: UTF8.self)
    }

    @Test("What would end the line or begin an escape is escaped; everything else stays as it is")
    func escapes() {
        #expect(Self.line() == "SETDESC\n")
        #expect(Self.line("") == "SETDESC \n")
        #expect(Self.line("100 %\r\n\u{0}\u{7F} é+\\") == "SETDESC 100 %25%0D%0A%00%7F é+\\\n")
    }

    @Test("A line has at most 1000 bytes, and what is cut ends at a whole character with an ellipsis")
    func length() {
        let most = AssuanRequest.lineByteLimit - "SETDESC \n".utf8.count
        #expect(Self.line(String(repeating: "x", count: most)).utf8.count == 1_000)
        #expect(!Self.line(String(repeating: "x", count: most)).contains("…"))
        for character in ["x", "é", "€", "🔐", "%", "\n", "👨‍👩‍👧"] {
            let line = Self.line(String(repeating: character, count: 2_000))
            #expect(line.utf8.count <= 1_000)
            #expect(line.hasSuffix("…\n"))
            let escaped = Self.line(character).dropFirst("SETDESC ".count).dropLast()
            let text = line.dropFirst("SETDESC ".count).dropLast(2)
            #expect(text == String(repeating: String(escaped), count: text.utf8.count / escaped.utf8.count))
            #expect(line.utf8.count > 1_000 - 2 * character.utf8.count * 3)
        }
    }
}
