// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import Synchronization
import Testing

/// An agent works on its own, so its work must not keep a keychain unlocked that its person has left.
@Suite("Automatic locking beside an agent")
struct AgentUseTests {
    @Test("What an agent sends and receives does not postpone the lock, and what a program reads does", arguments: [false, true])
    func lock(isItemRead: Bool) async throws {
        let time = ManualTime()
        let directory = try TemporaryDirectory(inMemory: true)
        let one = try Machine("one", in: directory.path)
        let other = try Machine("other", in: directory.path, keys: ProcessMemoryKeys(time: time))
        let storage = try await FolderStorage.make(
            path: directory.path + "/shared", outside: [one.home, other.home], options: FolderOptions())
        try one.found("spaceball-one")
        try other.put("own", "1", .whenUnlocked)
        try await other.join(one, as: "eagle-5")
        try other.keychain.set("swordfish", autoLock: .after(seconds: 600))
        time.pass(seconds: 400)
        try one.put("received", "2", .whenUnlocked)
        for machine in [one, other, one, other] { try await SyncAgent(machine.keychain, on: storage).runUntilQuiet() }
        #expect(try one.secret("own") == "1")
        if isItemRead { #expect(try other.secret("received") == "2") }
        time.pass(seconds: 400)
        #expect(try other.keychain.sessionStatus().state == (isItemRead ? .unlocked : .locked))
    }
}
