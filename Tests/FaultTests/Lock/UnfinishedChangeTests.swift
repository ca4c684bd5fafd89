// SPDX-License-Identifier: Apache-2.0
import Glibc
import Keybag
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("What a change of passcode or policy leaves to do is done by the next unlock")
struct UnfinishedChangeTests {
    private static func rowCountToRewrap(_ home: String) throws -> Int? {
        try LocalKeychain(home: home).report().store?.rowCountToRewrap
    }

    @Test(
        "A rewrapping that was killed goes on where it was, and the older class keys go at its end",
        .enabled(if: FlushTrace.obstacle == nil, "\(FlushTrace.obstacle ?? "")"))
    func resumed() throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            let total = try #require(try Self.rowCountToRewrap(home))
            #expect(total > 128, "more than one batch")
            // Killed at the flushes of its batches: something is done, and something is left.
            var left = total
            for flush in 1...20 where left == total {
                let killed = try SessionProcess(
                    home: home,
                    under: ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:signal=KILL:when=\(flush)"])
                killed.send(operation.request)
                try killed.end()
                left = try Self.rowCountToRewrap(home) ?? 0
            }
            #expect(left > 0 && left < total, "\(left) of \(total)")
            #expect(try OpenedStore(home: home).keybag.holdsOlderGenerations)
            _ = try operation.check(home: home, "resumed")
            #expect(try Self.rowCountToRewrap(home) == 0)
            #expect(try !OpenedStore(home: home).keybag.holdsOlderGenerations)
            try OpenedStore(home: home).forgetHeldKeys()
        }
    }

    @Test("A row that cannot be read keeps its class key, and the others go on")
    func damagedRow() throws {
        try withLocalKeychain { keychain, home in
            try LocalKeychain(home: home).addItemOfEachClass()
            let code = Accessibility.whenUnlocked.code
            try RawDatabase(home + "/keychain.db").execute(
                "UPDATE items SET sealed_attributes = zeroblob(length(sealed_attributes)) WHERE accessibility = \(code)")
            let original = try OpenedStore(home: home)
            let oldKeys = try original.classKeys(of: original.keybag)
            try keychain.set("swordfish")
            let opened = try OpenedStore(home: home)
            let keys = try opened.classKeys(of: opened.unlockedKeys("swordfish"))
            let older = Set(keys.keys.filter { $0.generation == 1 && $0.accessibility.isPasscodeProtected })
            #expect(older == [ClassKeyID(.whenUnlocked, generation: 1)])
            #expect(older.allSatisfy { keys[$0] == oldKeys[$0] })
            #expect(throws: KeychainFailure(.decode, "")) { try keychain.secret(of: "ak") }
            #expect(try keychain.secret(of: "ck") == "secret of ck")
            #expect(try keychain.report().store?.rowCountToRewrap == 1)
        }
    }

    @Test(
        "An unlock by any process raises the cost of the passcode to what the policy has become, and never lowers it",
        .enabled(if: KernelKeyringTool.keyringObstacle == nil, "\(KernelKeyringTool.keyringObstacle ?? "")"))
    func costFollowsPolicy() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItem("kept", "secret of kept")
            try keychain.set("swordfish")
            let process = try SessionProcess(home: home)
            var expected = PasscodeCost(memoryMebibytes: 1)
            for (policy, afterwards) in [(1, 1), (4, 4), (2, 4)] {
                _ = try LocalKeychain.cheaplyUnlocked(home: home, memoryMebibytes: policy)
                #expect(try OpenedStore(home: home).keybag.passcodeCost == expected)
                #expect(try process.status(of: "lock-all") == .success)
                #expect(try process.status(of: "unlock wrong") == .authFailed)
                #expect(try OpenedStore(home: home).keybag.passcodeCost == expected, "a wrong passcode changes nothing")
                #expect(try process.status(of: "unlock swordfish") == .success)
                expected = PasscodeCost(memoryMebibytes: afterwards)
                #expect(try OpenedStore(home: home).keybag.passcodeCost == expected)
                #expect(try process.status(of: "read kept") == .success)
                #expect(try keychain.secret(of: "kept") == "secret of kept")
            }
        }
    }

    @Test(
        "A lock that comes while an unlock still rewraps rows stays, and the rewrapping goes on",
        .enabled(if: (FlushTrace.obstacle ?? KernelKeyringTool.keyringObstacle) == nil, "strace and the kernel's keyring are needed"),
        arguments: ["lock", "lock-all"])
    func lockDuringRewrapping(lock: String) throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            // Each flush takes its time, so that another process gets its turn before the last one.
            let slow = try SessionProcess(
                home: home,
                under: ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=300000"])
            let other = try SessionProcess(home: home)
            slow.send(operation.request)
            var lookCount = 0
            while lookCount < 10_000, try other.ask("state").text != "unlocked" {
                lookCount += 1
                usleep(1_000)
            }
            #expect(try other.status(of: lock) == .success)
            let leftAtLock = try Self.rowCountToRewrap(home) ?? 0
            #expect(leftAtLock > 0, "the rewrapping was over before")
            #expect(try slow.answer().status == 0)
            #expect(try other.ask("state").text == (lock == "lock" ? "locked" : "neverUnlocked"))
            #expect(try other.status(of: "read ak") == .interactionNotAllowed)
            #expect(try slow.status(of: "read ak") == .interactionNotAllowed)
            #expect(try Self.rowCountToRewrap(home) == 0, "it went on all the same")
            try OpenedStore(home: home).forgetHeldKeys()
        }
    }
}
