// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import ValetCLI

@Suite("Advice of failures")
struct CommandFailureTests {
    @Test("The advice for a partial change does not say that nothing was changed")
    func partialChange() {
        for status in [KeychainStatus.notAvailable, .readOnly, .inputOutput, .authFailed, .parameter] {
            let failure = CommandFailure(passcode: KeychainFailure(status, "done, but", remedy: .lockAgain))
            #expect(failure.status == .unavailable)
            #expect(!failure.advice.contains("Nothing was changed") && failure.advice.contains("valet "), "\(failure.advice)")
        }
    }

    @Test("The advice for a remedy names the file or program")
    func files() {
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .correctPolicy)).advice.contains("administrator"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .makeRoomForKeys)).advice.contains("keyctl"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .useNewerVersion)).advice.contains("newer version"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .closeElsewhere)).advice.contains("Quit the programs"))
        // A copy that is put back lacks the latest changes.
        let hidden = CommandFailure(KeychainFailure(.notAvailable, "", isDamage: true, remedy: .closeElsewhere))
        #expect(hidden.status == .damaged && hidden.advice.contains("Quit the programs"))
        let refused = CommandFailure(KeychainFailure(.notAvailable, "", isDamage: true, remedy: .repair))
        #expect(refused.advice.contains("valet repair") && refused.status == .damaged)
        #expect(CommandFailure(KeychainFailure(.inputOutput, "", remedy: .writeElsewhere)).advice.contains("free space"))
        #expect(CommandFailure(KeychainFailure(.notAvailable, "", remedy: .useOneVolume)).advice.contains("KEYCHAIN_HOME"))
    }

    @Test("Each refusal of authentication has its own advice")
    func refusals() {
        let refusals: [AuthenticationRefusal] = [
            .passcodeNotSet, .wrongPasscode, .lockedOut(seconds: 30), .timedOut, .biometryNotAvailable, .notInteractive, .invalidContext,
            .wrongRecoveryKey, .notSatisfied, .biometryNotEnrolled, .biometryLockedOut, .biometryNotRecognized,
        ]
        let failures = refusals.map { CommandFailure(KeychainFailure(.authFailed, "why", refusal: $0)) }
        #expect(failures.allSatisfy { $0.status == .unavailable })
        #expect(Set(failures.map(\.advice)).count == refusals.count)
        #expect(failures[0].advice.contains("valet passcode set"))
        #expect(failures[2].advice.contains("30 s"))
        #expect(failures[5].advice.contains("--passcode-fd"))
        #expect(CommandFailure(KeychainFailure(.userCanceled, "why")).problem.contains("canceled"))
    }
}

@Suite("Listing items")
struct ItemListingTests {
    private static func item(_ key: String, byteCount: Int? = 5) -> ListedItem {
        ListedItem(
            key: key, accessibility: .whenUnlocked, created: Date(timeIntervalSince1970: 0), modified: Date(timeIntervalSince1970: 60),
            byteCount: byteCount)
    }

    @Test("Lines are sorted by bytes")
    func lines() {
        #expect(ItemListing.lines(["b", "a", "B", "é"]) == "B\na\nb\né\n")
        #expect(ItemListing.lines([]) == "")
    }

    @Test("Characters that move the cursor or hide text are escaped", arguments: ["\u{1B}[2J", "a\nb", "\u{202E}", "\u{7F}", "\u{9B}"])
    func escapes(_ key: String) {
        let shown = ItemListing.escapingUnprintable(key)
        #expect(shown.unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) })
        #expect(shown.contains("\\"))
        #expect(!ItemListing.table([Self.item(key)]).contains(key))
    }

    @Test("Text in any script is shown unchanged", arguments: ["key", "clé", "鍵", "🔑", "a b"])
    func text(_ key: String) {
        #expect(ItemListing.escapingUnprintable(key) == key)
    }

    @Test("An unreadable secret has no size")
    func unreadable() throws {
        #expect(ItemListing.table([Self.item("a", byteCount: nil)]).contains("unreadable"))
        let json = String(decoding: try ItemListing.json([Self.item("a", byteCount: nil)]), as: UTF8.self)
        #expect(!json.contains("size"))
    }

    @Test("JSON preserves every key")
    func json() throws {
        let data = try ItemListing.json([Self.item("a\n\"b\\\u{1B}"), Self.item("a/b")])
        let objects = try #require(try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
        #expect(objects.map { $0["key"] as? String } == ["a\n\"b\\\u{1B}", "a/b"])
        #expect(objects[0]["modified"] as? String == "1970-01-01T00:01:00Z")
        #expect(objects[0]["size"] as? Int == 5)
    }
}
