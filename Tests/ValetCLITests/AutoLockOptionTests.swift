// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import KeychainCore
import Testing

@testable import ValetCLI

@Suite("When an unlocked keychain locks itself")
struct AutoLockOptionTests {
    @Test(
        "A number has a unit, and none is never",
        arguments: [
            ("1s", 1), ("15m", 900), ("2h", 7_200), ("1d", 86_400), ("090s", 90), ("4294967295s", UInt32.max), ("none", nil),
        ] as [(String, UInt32?)])
    func parsed(_ text: String, _ seconds: UInt32?) throws {
        #expect(try AutoLockOption(parsing: text).autoLock.seconds == seconds)
    }

    @Test(
        "Anything else is refused",
        arguments: ["", "15", "m", "0m", "-1m", "+1m", "1.5h", "15 m", "15min", "never", "4294967296s", "4294967295m", "１m"])
    func refused(_ text: String) {
        #expect(throws: ValidationError.self) { try AutoLockOption(parsing: text) }
    }

    @Test(
        "It is told in the largest unit that is exact",
        arguments: [
            (1, "1 second"), (90, "90 seconds"), (60, "1 minute"), (900, "15 minutes"), (3_600, "1 hour"), (172_800, "2 days"),
        ] as [(UInt32, String)])
    func told(_ seconds: UInt32, _ words: String) {
        #expect(AutoLock.after(seconds: seconds).phrase == "locks itself after \(words) without use")
    }
}
