// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Locking by itself")
struct AutoLockTests {
    @Test("Whoever only looks at the state does not keep the keychain unlocked", arguments: [KeyHolderSelection.automatic, .processMemory])
    func looking(holder: KeyHolderSelection) throws {
        try withLocalKeychain(holder: holder) { keychain, _ in
            try keychain.addItem("a", "1")
            try keychain.set("swordfish", autoLock: .after(seconds: 1))
            let deadline = ContinuousClock.now + .seconds(30)
            // Asked without a pause, so that the time would never be over if asking began it anew.
            while try keychain.sessionStatus().state == .unlocked, ContinuousClock.now < deadline { usleep(1_000) }
            #expect(try keychain.sessionStatus().state == .locked)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try keychain.secret(of: "a") }
        }
    }
}
