// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
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
    func reopened(over other: any ItemStore, _ holder: any KeyHolder) throws(KeychainFailure) -> OpenKeychain {
        let keybag = try OpenKeybag(
            copies: try other.read { reading throws(KeychainFailure) in try reading.keybag().copies }, storeID: store.storeID,
            deviceSecret: deviceSecret, holder: holder)
        let keychain = keychain(keys: keybag, store: other)
        return OpenKeychain(
            store: other, keybag: keybag, keychain: keychain, protector: protector, holder: holder)
    }
}

/// A key holder that runs an action before it stores the secret of one slot, as if another process acted at that moment.
struct InterruptedHolder: KeyHolder {
    /// The secret whose storing is interrupted.
    struct Point: CustomTestStringConvertible {
        enum Step { case unlock, rewrapping }

        let slot: KeyHolderSlot
        /// An unlock holds the keys of the keybag that it opened; a completed rewrapping, those of the keybag that replaces it.
        let step: Step

        var testDescription: String { "the \(step) holds the slot \(slot.rawValue)" }

        static let all = [Step.unlock, .rewrapping].flatMap { step in
            KeyHolderSlot.ofClassKeys.map { Point(slot: $0, step: step) }
        }
    }

    /// Runs its closure once.
    final class Action: @unchecked Sendable {
        // Unchecked: the unlock that it interrupts runs on the test's thread.
        private var body: (() throws -> Void)?
        private(set) var result: Result<Void, any Error>?

        init(_ body: @escaping () throws -> Void) {
            self.body = body
        }

        func run() {
            guard let body else { return }
            self.body = nil
            result = Result { try body() }
        }
    }

    let base: any KeyHolder
    let point: Point
    let firstGeneration: UInt64
    let action: Action
    var generation: UInt64 = 0

    var kind: KeyHolderKind { base.kind }

    func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder {
        InterruptedHolder(
            base: base.forKeybag(identity), point: point, firstGeneration: firstGeneration, action: action,
            generation: identity.generation)
    }

    func hold(
        _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> UInt64 {
        if slot == point.slot, (generation == firstGeneration) == (point.step == .unlock) { action.run() }
        return try base.hold(secret, in: slot, timeoutSeconds: timeoutSeconds, lockEpoch: lockEpoch)
    }

    func load(
        _ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch
    ) throws(KeychainFailure) -> HeldSecret? {
        try base.load(slot, for: purpose, lockEpoch: lockEpoch)
    }

    func remove(_ slot: KeyHolderSlot) throws(KeychainFailure) { try base.remove(slot) }

    func removeOlder(_ slot: KeyHolderSlot) throws(KeychainFailure) { try base.removeOlder(slot) }

    func discard(_ slot: KeyHolderSlot, ticket: UInt64) { base.discard(slot, ticket: ticket) }
}

/// A keychain over a store or with a key holder in which another process acts during a change.
private struct InterruptedBackend: KeychainBackend {
    let opened: OpenedStore
    let store: any ItemStore
    let holder: any KeyHolder
    let entitlements = Entitlements(applicationIdentifier: "test")
    let promptSettings = PromptSettings(prompter: ScriptedPresencePrompter(), requester: "test")
    var newKeychainHolder: KeyHolderKind { holder.kind }

    func passcodePolicy() -> PasscodePolicy {
        PasscodePolicy(minimumLength: 4, cost: .lowest)
    }

    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain { try opened.reopened(over: store, holder) }
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
            let code = ItemAccessibility.whenUnlocked.code
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
            var expected: PasscodeCost? = .lowest
            for (policy, afterwards) in [(1, 1), (4, 4), (2, 4)] {
                _ = try LocalKeychain.withCheapPasscode(home: home, policyMebibytes: policy)
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
            let locked = LocalKeychain(
                backend: InterruptedBackend(opened: opened, store: store, holder: try opened.holder(.processMemory)))
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

    /// Unlocks, and runs `body` before the unlock stores a certain secret.
    ///
    /// Returns the keychain that was unlocked.
    private func unlock(
        home: String, interruptedAt point: InterruptedHolder.Point, by body: @escaping () throws -> Void
    ) throws -> LocalKeychain {
        let opened = try OpenedStore(home: home)
        let action = InterruptedHolder.Action(body)
        let holder = InterruptedHolder(
            base: try opened.holder(), point: point, firstGeneration: opened.keybag.keybagGeneration, action: action)
        let keychain = LocalKeychain(backend: InterruptedBackend(opened: opened, store: opened.store, holder: holder))
        try keychain.unlock(with: "swordfish")
        try #require(action.result, "the unlock did not store that secret").get()
        return keychain
    }

    @Test(
        "A lock during an unlock takes effect, and the next unlock completes the rewrapping",
        .requiresKernelKeyring, arguments: InterruptedHolder.Point.all, ["lock", "lock-all"])
    func lockDuringUnlock(point: InterruptedHolder.Point, lock: String) throws {
        let operation = PasscodeOperation.rewrap
        try withTemporaryDirectory(inMemory: true) { home in
            try operation.prepare(home: home)
            let other = try SessionProcess(home: home)
            let unlocking = try unlock(home: home, interruptedAt: point) { () throws in
                #expect(try other.status(of: lock) == .success)
            }
            let expected = lock == "lock" ? LockState.locked : .neverUnlocked
            #expect(try unlocking.sessionStatus().state == expected)
            #expect(try other.ask("state").text == "\(expected)")
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try unlocking.secret(of: "ak") }
            #expect(try other.status(of: "read ak") == .interactionNotAllowed)
            #expect(try other.status(of: "read ck") == (lock == "lock" ? .success : .interactionNotAllowed))
            if lock == "lock" {
                #expect(try unlocking.secret(of: "ck") == "secret of ck")
            } else {
                #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try unlocking.secret(of: "ck") }
            }
            #expect(try other.status(of: operation.request) == .success)
            #expect(try Self.pendingRewrapCount(home) == 0)
            try OpenedStore(home: home).removeHeldKeys()
        }
    }

    @Test("An unlock during which another process changes the keybag leaves the keychain unlocked", .requiresKernelKeyring)
    func keybagChangeDuringUnlock() throws {
        try withLocalKeychain { keychain, home in
            try keychain.addItem("kept", "secret of kept")
            try keychain.set("swordfish")
            try keychain.lock(.everything)
            _ = try LocalKeychain.withCheapPasscode(home: home, policyMebibytes: 2)
            let other = try SessionProcess(home: home)
            let overtaken = try unlock(home: home, interruptedAt: InterruptedHolder.Point(slot: .unlocked, step: .unlock)) { () throws in
                #expect(try other.status(of: "unlock swordfish") == .success)
                #expect(try OpenedStore(home: home).keybag.passcodeCost == PasscodeCost(memoryMebibytes: 2))
            }
            #expect(try overtaken.sessionStatus().state == .unlocked)
            #expect(try overtaken.secret(of: "kept") == "secret of kept")
            #expect(try other.ask("state").text == "unlocked")
            #expect(try other.status(of: "read kept") == .success)
        }
    }
}
