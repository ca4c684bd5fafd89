// SPDX-License-Identifier: Apache-2.0

import Glibc
import KeychainEngine
import Testing

@Suite("A line typed without echo")
struct TypedLineTests {
    private static let erase: UInt8 = 0x7F
    private static let kill: UInt8 = 0x15
    private static let endOfFile: UInt8 = 0x04
    private static let interrupt: UInt8 = 0x03

    private func line(_ text: String, limit: Int = 100) -> TypedLine {
        line(Array(text.utf8), limit: limit)
    }

    private func line(_ bytes: [UInt8], limit: Int = 100) -> TypedLine {
        var mode = termios()
        // The buffer is used within the closure only.
        unsafe withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            unsafe characters[Int(VERASE)] = Self.erase
            unsafe characters[Int(VKILL)] = Self.kill
            unsafe characters[Int(VEOF)] = Self.endOfFile
            unsafe characters[Int(VINTR)] = Self.interrupt
        }
        var line = TypedLine(mode: mode, limit: limit)
        for byte in bytes where line.end == nil { line.take(byte) }
        return line
    }

    @Test("A line break ends it and is no part of it", arguments: ["secret\n", "secret\r", "secret\nmore"])
    func lineBreak(_ typed: String) {
        #expect(line(typed).end == .complete)
        #expect(line(typed).bytes == Array("secret".utf8))
    }

    @Test("Erase takes a whole character back, kill the whole line, and there may be nothing to take")
    func editing() {
        #expect(line(Array("aé".utf8) + [Self.erase]).bytes == Array("a".utf8))
        #expect(line(Array("ab".utf8) + [0x08]).bytes == Array("a".utf8))
        #expect(line([Self.erase] + Array("a".utf8)).bytes == Array("a".utf8))
        #expect(line(Array("ab".utf8) + [Self.kill] + Array("c".utf8)).bytes == Array("c".utf8))
    }

    @Test("End of file cancels an empty line and ends another")
    func endOfFile() {
        #expect(line([Self.endOfFile]).end == .cancelled)
        #expect(line(Array("a".utf8) + [Self.endOfFile]).end == .complete)
    }

    @Test("Interrupt cancels whatever was typed")
    func interrupt() {
        #expect(line([Self.interrupt]).end == .cancelled)
        #expect(line(Array("a".utf8) + [Self.interrupt]).end == .cancelled)
    }

    @Test("What is too long is refused, not cut off")
    func tooLong() {
        #expect(line("abcd", limit: 3).end == .tooLong)
        #expect(line("abc\n", limit: 3).end == .complete)
        #expect(line(String(repeating: "a", count: 10_000) + "\n", limit: 20_000).bytes.count == 10_000)
    }

    @Test("An unfinished line has no end")
    func unfinished() {
        #expect(line("abc").end == nil)
    }
}
