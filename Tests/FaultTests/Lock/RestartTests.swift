// SPDX-License-Identifier: Apache-2.0
import Contracts
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("Restarts and login sessions", .blocking)
struct RestartTests {
    @Test(
        "When the keyring is empty, as after a restart, the keychain has never been unlocked",
        .requiresKeyctl)
    func restart() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set("swordfish")
            let process = try SessionProcess(home: home)
            #expect(try process.status(of: "read ck") == .success)
            let opened = try OpenedStore(home: home)
            let (storeID, mark) = (opened.store.storeID, opened.keybag.identity)
            for slot in KeyHolderSlot.ofClassKeys {
                let tag = String(mark.tag, radix: 16)
                let description = "keychain:\(storeID.hexadecimal):\(slot.rawValue):\(mark.generation):\(tag)"
                let found = try KernelKeyringTool.run(["search", "@u", "user", description])
                try #require(found.isSuccess, "the key is not where it is looked for")
                #expect(try KernelKeyringTool.run(["invalidate", found.output.filter(\.isNumber)]).isSuccess)
            }
            for asked in [process, try SessionProcess(home: home)] {
                #expect(try asked.ask("state").text == "neverUnlocked")
                #expect(try asked.status(of: "read ak") == .interactionNotAllowed)
                #expect(try asked.status(of: "read ck") == .interactionNotAllowed)
                #expect(try asked.status(of: "read dk") == .success)
                #expect(try asked.status(of: "read absent") == .itemNotFound)
            }
            #expect(try process.status(of: "unlock swordfish") == .success)
            #expect(try keychain.secret(of: "ak") == "secret of ak")
        }
    }

    @Test("Keys held in process memory end with the process")
    func processMemory() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set("swordfish")
            let first = try SessionProcess(home: home, holder: .processMemory)
            #expect(try first.ask("state").text == "neverUnlocked", "what another process holds is not seen")
            #expect(try first.status(of: "unlock swordfish") == .success)
            #expect(try first.status(of: "read ak") == .success)
            try first.end()
            let second = try SessionProcess(home: home, holder: .processMemory)
            #expect(try second.ask("state").text == "neverUnlocked")
            #expect(try second.status(of: "read ck") == .interactionNotAllowed)
        }
    }

    @Test(
        "Unlocking, reading, and locking work from a session whose keyring is not linked to the user's, and affect all sessions",
        .requiresKeyctl)
    func unlinkedSession() throws {
        #expect(try !KernelKeyringTool.run(["session", "-", "keyctl", "show", "@s"]).output.contains("_uid."), "the session is linked")
        try withLocalKeychain { keychain, home in
            try keychain.addItemOfEachClass()
            try keychain.set("swordfish")
            let (inside, outside) = (
                try SessionProcess(home: home, under: ["keyctl", "session", "-"]), try SessionProcess(home: home)
            )
            let elsewhere = try SessionProcess(home: home, under: ["keyctl", "session", "-"])
            for (actor, observers) in [(inside, [outside, elsewhere]), (outside, [inside, elsewhere])] {
                #expect(try actor.status(of: "lock-all") == .success)
                for process in observers + [actor] {
                    #expect(try process.ask("state").text == "neverUnlocked")
                    #expect(try process.status(of: "read ak") == .interactionNotAllowed)
                }
                #expect(try actor.status(of: "unlock swordfish") == .success)
                for process in observers + [actor] {
                    #expect(try process.ask("state").text == "unlocked")
                    #expect(try process.status(of: "read ak") == .success)
                }
                #expect(try actor.status(of: "lock") == .success)
                for process in observers + [actor] {
                    #expect(try process.status(of: "read ak") == .interactionNotAllowed)
                    #expect(try process.status(of: "read ck") == .success)
                }
            }
        }
    }
}
