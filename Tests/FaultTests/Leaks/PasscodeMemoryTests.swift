// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("What passcodes and the device secret leave in memory")
struct PasscodeMemoryTests {
    /// A passcode that chance does not find, as the hexadecimal digits in which a child is told it: those are not the passcode.
    private struct MarkedPasscode {
        let bytes = (0..<32).map { _ in UInt8.random(in: UInt8(ascii: "!")...UInt8(ascii: "~")) }
        var digits: String { bytes.map { String($0, radix: 16) }.joined() }
    }

    @Test(
        "Set, changed, unlocked with and got wrong, locked: no passcode is left, and no device secret",
        arguments: [KeyHolderSelection.automatic, .processMemory])
    func sessions(holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, home in
            try keychain.addItemOfEachClass()
            let old = MarkedPasscode()
            let new = MarkedPasscode()
            let wrong = MarkedPasscode()
            let setter = try SessionProcess(home: home, holder: holder)
            #expect(try setter.status(of: "set-secret \(old.digits)") == .success)
            #expect(try setter.status(of: "change-secret \(old.digits) \(new.digits)") == .success)
            let unlocker = try SessionProcess(home: home, holder: holder)
            #expect(try unlocker.status(of: "unlock-secret \(wrong.digits)") == .authFailed)
            #expect(try unlocker.status(of: "unlock-secret \(new.digits)") == .success)
            #expect(try unlocker.ask("read ak").text == "secret of ak")
            let deviceSecret = try bytes(of: OpenedStore(home: home).deviceSecret)
            let search = MemorySearch(secrets: ["old": old.bytes, "new": new.bytes, "wrong": wrong.bytes, "device": deviceSecret])

            for process in [setter, unlocker] {
                try expectNoPasscode(in: process, search)
                #expect(try process.status(of: "lock") == .success)
                try expectNoPasscode(in: process, search)
            }
            // The search finds a passcode where there is one.
            #expect(try setter.status(of: "plant \(new.digits)") == .success)
            #expect(try search.namesFound(in: setter.processID).contains("new"))
        }
    }

    private func expectNoPasscode(in process: SessionProcess, _ search: MemorySearch) throws {
        let finding = try search.run(on: process.processID)
        #expect(finding.names.isEmpty, "\(finding.names.sorted())")
        #expect(finding.searchedByteCount > finding.unreadableByteCount)
    }

    private func bytes(of secret: borrowing SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }
}
