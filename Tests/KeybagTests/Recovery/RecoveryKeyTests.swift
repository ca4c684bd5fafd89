// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Testing

@testable import Keybag

@Suite("A recovery key as people write it")
struct RecoveryKeyTests {
    private static func bits(_ bytes: [UInt8]) throws -> SecretBytes {
        // The bytes are copied within the closure.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    private static func text(_ key: RecoveryKey) throws -> String { String(decoding: try key.text().copiedBytes(), as: UTF8.self) }

    private static func key(_ text: String) throws(KeychainFailure) -> RecoveryKey {
        let bytes = Array(text.utf8)
        // The bytes are read within the closure.
        return try unsafe bytes.span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
    }

    @Test("It is nine groups of four, of letters that none is mistaken for")
    func form() throws {
        let text = try Self.text(RecoveryKey())
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        #expect(text.utf8.count == RecoveryKey.textByteCount && groups.count == 9 && groups.allSatisfy { $0.count == 4 })
        #expect(text.allSatisfy { "0123456789ABCDEFGHJKMNPQRSTVWXYZ-".contains($0) })
    }

    @Test("Known bits have a known text")
    func knownText() throws {
        let zeros = try Self.text(RecoveryKey(bits: Self.bits(Array(repeating: 0, count: 20))))
        #expect(zeros.hasPrefix("0000-0000-0000-0000-0000-0000-0000-0000-"))
        let ones = try Self.text(RecoveryKey(bits: Self.bits(Array(repeating: 0xFF, count: 20))))
        #expect(ones.hasPrefix("ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-"))
        let counting = try Self.text(RecoveryKey(bits: Self.bits(Array(0..<20))))
        // 00000 00000 00000 10000 00100 00001 10000 01000 …
        #expect(counting.hasPrefix("000G-40R4-0M30-E209-185G-R38E-1W8"), "\(counting)")
    }

    @Test("Read again, in whatever case and with whatever blanks, it is the same key")
    func readAgain() throws {
        for _ in 0..<50 {
            let key = try RecoveryKey()
            let text = try Self.text(key)
            let folded = text.lowercased().replacing("0", with: "o").replacing("1", with: "l")
            for typed in [text, text.replacing("-", with: ""), text.replacing("-", with: " \t- "), folded, text.replacing("1", with: "I")] {
                #expect(try Self.key(typed).bits.copiedBytes() == key.bits.copiedBytes())
            }
        }
    }

    @Test("With any one letter mistyped its check says so, nearly always, and it is never the same key")
    func mistyped() throws {
        let key = try RecoveryKey()
        let letters = Array(try Self.text(key))
        var acceptedCount = 0
        for index in letters.indices where letters[index] != "-" {
            for other in "0123456789ABCDEFGHJKMNPQRSTVWXYZ" where other != letters[index] {
                var typed = letters
                typed[index] = other
                do throws(KeychainFailure) {
                    let accepted = try Self.key(String(typed))
                    #expect(accepted.bits.copiedBytes() != key.bits.copiedBytes())
                    acceptedCount += 1
                } catch {
                    #expect(error.status == .parameter && error.reason.contains("mistyped"))
                }
            }
        }
        // One of a million is accepted by chance; of a thousand, ten are not.
        #expect(acceptedCount < 10)
    }

    @Test(
        "What is no recovery key is refused, and the reason holds nothing of it",
        arguments: ["", "-", "0000", "U000-0000", "ä000", String(repeating: "Z", count: 37), String(repeating: "Z", count: 400)])
    func refused(_ text: String) {
        let failure = #expect(throws: KeychainFailure.self) { try Self.key(text) }
        #expect(failure?.status == .parameter && (text.count < 4 || failure?.reason.contains(text) == false))
    }
}
