// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing

/// A store that advances the lock epoch between two writes, as if another process had locked the keychain.
final class StoreWithConcurrentLock: ItemStore {
    private struct State {
        var writeCount = 0
        var rowCountAtLock: Int?
    }

    private let base: SQLiteItemStore
    private let lockAfterWrite: Int
    private let state = Mutex(State())

    /// The number of rows still under the first class keys at the time of the lock.
    var rowCountAtLock: Int? { state.withLock { $0.rowCountAtLock } }

    init(base: SQLiteItemStore, lockAfterWrite: Int) {
        self.base = base
        self.lockAfterWrite = lockAfterWrite
    }

    func read<Result>(_ body: (any ItemReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        let outcome = try base.write(ifKeybagGeneration: generation, body)
        let writeCount = state.withLock { state in
            state.writeCount += 1
            return state.writeCount
        }
        if writeCount == lockAfterWrite {
            try base.advanceLockEpoch(.whenUnlocked)
            let rowCount = try base.read { reading throws(KeychainFailure) in
                try reading.rowCount(underPasscodeKeysBelow: 2)
            }
            state.withLock { $0.rowCountAtLock = rowCount }
        }
        return outcome
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) { try base.advanceLockEpoch(extent) }
}

extension OpenedStore {
    /// Opens the keychain on `other`, with the current keybag.
    func reopened(over other: StoreWithConcurrentLock) throws(KeychainFailure) -> OpenKeychain {
        let holder = try holder(.processMemory)
        let keybag = try OpenKeybag(
            copies: try other.read { reading throws(KeychainFailure) in try reading.keybag().copies }, storeID: store.storeID,
            deviceSecret: deviceSecret, holder: holder)
        let keychain = keychain(keys: keybag, store: other)
        return OpenKeychain(
            store: other, keybag: keybag, keychain: keychain, protector: protector, holder: holder, isKeybagCurrent: true)
    }
}

/// A keychain over a store that is locked in the middle of a change.
private struct BackendWithConcurrentLock: KeychainBackend {
    let opened: OpenedStore
    let store: StoreWithConcurrentLock
    let entitlements = Entitlements(applicationIdentifier: "test")
    let promptSettings = PromptSettings(verifier: ScriptedPresenceVerifier(), requester: "test")
    let newKeychainHolder = KeyHolderKind.processMemory

    func passcodePolicy() -> PasscodePolicy {
        PasscodePolicy(minimumLength: 4, cost: PasscodeCost(memoryMebibytes: 1) ?? .standard)
    }

    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain { try opened.reopened(over: store) }
}

@Suite("The next unlock completes an interrupted change of passcode or policy", .blocking)
struct UnfinishedChangeTests {
    private static func pendingRewrapCount(_ home: String) throws -> Int? {
        try LocalKeychain(home: home).report().store?.pendingRewrapCount
    }

    @Test(
        "Rewrapping that was killed resumes where it stopped, and then removes the older class keys",
        .requiresStrace)
    func resumed() throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            let total = try #require(try Self.pendingRewrapCount(home))
            #expect(total > 128, "more than one batch")
            // Killed at the second flush of the -wal file, which is that of the second batch: the first batch is done.
            let killed = try SessionProcess(
                home: home,
                under: [
                    "strace", "-f", "-o", "/dev/null", "-P", home + "/keychain.db-wal", "-e", "trace=fdatasync", "-e",
                    "inject=fdatasync:signal=KILL:when=2",
                ])
            killed.send(operation.request)
            try killed.end()
            let left = try Self.pendingRewrapCount(home) ?? 0
            #expect(left > 0 && left < total, "\(left) of \(total)")
            #expect(try OpenedStore(home: home).keybag.holdsOlderGenerations)
            _ = try operation.check(home: home, "resumed")
            #expect(try Self.pendingRewrapCount(home) == 0)
            #expect(try !OpenedStore(home: home).keybag.holdsOlderGenerations)
            try OpenedStore(home: home).removeHeldKeys()
        }
    }

    @Test("A row that cannot be read keeps its class key, and the other rows are rewrapped")
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
            #expect(try keychain.report().store?.pendingRewrapCount == 1)
        }
    }

    @Test(
        "An unlock by any process raises the cost of the passcode to the policy's, and never lowers it",
        .requiresKernelKeyring)
    func costFollowsPolicy() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItem("kept", "secret of kept")
            try keychain.set("swordfish")
            let process = try SessionProcess(home: home)
            var expected = PasscodeCost(memoryMebibytes: 1)
            for (policy, afterwards) in [(1, 1), (4, 4), (2, 4)] {
                _ = try LocalKeychain.withCheapPasscode(home: home, memoryMebibytes: policy)
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
        "Rows are rewrapped even if the policy cannot be read",
        .requiresKernelKeyring)
    func brokenPolicy() throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            try "not JSON".write(toFile: home + "/policy.json", atomically: true, encoding: .utf8)
            #expect(try SessionProcess(home: home).status(of: operation.request) == .success)
            #expect(try Self.pendingRewrapCount(home) == 0)
            #expect(try !OpenedStore(home: home).keybag.holdsOlderGenerations)
            try OpenedStore(home: home).removeHeldKeys()
        }
    }

    @Test("A lock stops rewrapping in progress, and the next unlock resumes it")
    func lockDuringRewrapping() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            for number in 0..<300 { try keychain.addItem("\(number)", "secret of \(number)") }
            let opened = try OpenedStore(home: home)
            // The first write is the passcode, the second the first batch of rows.
            let store = StoreWithConcurrentLock(base: opened.store, lockAfterWrite: 2)
            let locked = LocalKeychain(backend: BackendWithConcurrentLock(opened: opened, store: store))
            try locked.setPasscode(try Passcode(text: "swordfish"), autoLock: .never)
            let left = try #require(try Self.pendingRewrapCount(home))
            #expect(left > 0 && left < 300)
            #expect(left == store.rowCountAtLock)
            #expect(try OpenedStore(home: home).keybag.holdsOlderGenerations)
            #expect(try keychain.sessionStatus().state != .unlocked)
            try keychain.unlock(with: "swordfish")
            #expect(try Self.pendingRewrapCount(home) == 0)
            #expect(try keychain.secrets().count == 300)
            #expect(try !OpenedStore(home: home).keybag.holdsOlderGenerations)
        }
    }

    /// Stops a process during its unlock, as it adds a key to the kernel's keyring; runs `body`; then lets the unlock complete.
    ///
    /// The first such call only tests whether the kernel accepts keys. Two calls follow for the unlock, and two after the rewrapping.
    private func withUnlock(
        _ request: String, stoppedAtKey number: Int, home: String, _ body: () throws -> Void
    ) throws -> SessionProcess {
        let log = home + "/log"
        let unlocking = try SessionProcess(
            home: home,
            under: ["strace", "-f", "-o", log, "-e", "trace=add_key", "-e", "inject=add_key:signal=STOP:when=\(number + 1)"])
        let processID = try #require(pid_t(unlocking.ask("process").text))
        unlocking.send(request)
        let isStopped = try waitUntil { try String(contentsOfFile: log, encoding: .utf8).contains("stopped by SIGSTOP") }
        #expect(isStopped, "the unlock did not reach the call")
        try body()
        kill(processID, SIGCONT)
        #expect(try unlocking.answer().status == 0)
        return unlocking
    }

    @Test(
        "A lock during an unlock takes effect, and the next unlock completes the rewrapping",
        .requiresStrace, .requiresKernelKeyring,
        arguments: Scale.pick(
            [(1, "lock"), (4, "lock"), (1, "lock-all")], full: (1...4).flatMap { number in ["lock", "lock-all"].map { (number, $0) } }))
    func lockDuringUnlock(keyNumber: Int, lock: String) throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            let other = try SessionProcess(home: home)
            let unlocking = try withUnlock(operation.request, stoppedAtKey: keyNumber, home: home) { () throws in
                #expect(try other.status(of: lock) == .success)
            }
            for process in [other, unlocking] {
                #expect(try process.ask("state").text == (lock == "lock" ? "locked" : "neverUnlocked"))
                #expect(try process.status(of: "read ak") == .interactionNotAllowed)
                #expect(try process.status(of: "read ck") == (lock == "lock" ? .success : .interactionNotAllowed))
            }
            #expect(try other.status(of: operation.request) == .success)
            #expect(try Self.pendingRewrapCount(home) == 0)
            try OpenedStore(home: home).removeHeldKeys()
        }
    }

    @Test(
        "An unlock during which another process changes the keybag leaves the keychain unlocked",
        .requiresStrace, .requiresKernelKeyring
    )
    func overtakenUnlock() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItem("kept", "secret of kept")
            try keychain.set("swordfish")
            try keychain.lock(.everything)
            _ = try LocalKeychain.withCheapPasscode(home: home, memoryMebibytes: 2)
            let other = try SessionProcess(home: home)
            let overtaken = try withUnlock("unlock swordfish", stoppedAtKey: 1, home: home) { () throws in
                #expect(try other.status(of: "unlock swordfish") == .success)
                #expect(try OpenedStore(home: home).keybag.passcodeCost == PasscodeCost(memoryMebibytes: 2), "nothing has changed")
            }
            for process in [other, overtaken] {
                #expect(try process.ask("state").text == "unlocked")
                #expect(try process.status(of: "read kept") == .success)
            }
        }
    }
}
