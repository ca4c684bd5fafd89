// SPDX-License-Identifier: Apache-2.0
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("What a released key leaves in memory")
struct PresenceMemoryTests {
    private static let passcode = "swordfish"

    private func bytes(of secret: borrowing SecretBytes) -> [UInt8] {
        // The bytes are copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }

    private func withProtectedItem(
        _ body: (_ home: String, _ process: SessionProcess, _ privateKey: [UInt8], _ classKeys: [String: [UInt8]]) throws -> Void
    ) throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.set(Self.passcode)
            try keychain.addItem("safe", "secret of safe", protectedBy: AccessControl(.whenUnlocked, constraint: .userPresence))
            let opened = try OpenedStore(home: home)
            let unlocked = try opened.unlockedKeys(Self.passcode)
            var keys: [String: [UInt8]] = [:]
            for (id, key) in try opened.classKeys(of: unlocked) where id.accessibility.isPasscodeProtected {
                keys["\(id.accessibility.rawValue) \(id.generation)"] = key
            }
            let process = try SessionProcess(home: home, holder: .processMemory)
            try body(home, process, bytes(of: try unlocked.presenceRelease(for: []).privateKey), keys)
        }
    }

    @Test("A read that asked leaves neither the presence key nor a class key, though the process stays")
    func oneRead() throws {
        try withProtectedItem { _, process, privateKey, classKeys in
            // This process has no keys of its own: the passcode released the item's class key as well.
            #expect(try process.ask("read-as-person safe \(Self.passcode)").text == "secret of safe")
            let search = MemorySearch(secrets: classKeys.merging(["presence": privateKey]) { old, _ in old })
            let finding = try search.run(on: process.processID)
            #expect(finding.names.isEmpty, "\(finding.names.sorted())")
            #expect(finding.searchedByteCount > finding.unreadableByteCount)
        }
    }

    @Test("A context keeps the presence key until it is invalidated, or the keychain is locked, and not longer", arguments: [true, false])
    func context(isInvalidated: Bool) throws {
        try withProtectedItem { home, process, privateKey, classKeys in
            #expect(try process.ask("read-as-person-with-context safe \(Self.passcode)").text == "secret of safe")
            let search = MemorySearch(secrets: classKeys.merging(["presence": privateKey]) { old, _ in old })
            #expect(try search.namesFound(in: process.processID).contains("presence"))
            if isInvalidated {
                #expect(try process.status(of: "invalidate-context") == .success)
            } else {
                #expect(try SessionProcess(home: home, holder: .processMemory).status(of: "lock") == .success)
                // Somebody else's lock is noticed by the watcher, within a second.
                sleep(3)
            }
            let left = try search.namesFound(in: process.processID)
            #expect(left.isEmpty, "\(left.sorted())")
        }
    }
}
