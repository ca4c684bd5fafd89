// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// A store that counts its sessions.
private final class SessionCountingStore: ItemStore {
    struct Counts: Equatable {
        var reads = 0
        var writes = 0
    }

    private let base: SQLiteItemStore
    private let state = Mutex(Counts())

    var counts: Counts { state.withLock { $0 } }

    init(_ base: SQLiteItemStore) {
        self.base = base
    }

    func read<Result>(_ body: (any ItemReading) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        state.withLock { $0.reads += 1 }
        return try base.read(body)
    }

    func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        state.withLock { $0.writes += 1 }
        return try base.write(ifKeybagGeneration: generation, body)
    }

    func advanceLockEpoch(_ extent: LockExtent) throws(KeychainFailure) { try base.advanceLockEpoch(extent) }
}

@Suite("A call reads the lock epoch in the session that it uses anyway", .blocking)
struct StoreSessionTests {
    enum Call: CaseIterable {
        case find, findMissing, update, delete, add

        fileprivate func expected(isPasscodeSet: Bool) -> SessionCountingStore.Counts {
            switch self {
            case .find, .findMissing: .init(reads: 1)
            case .update: .init(reads: 1, writes: 1)
            case .delete: .init(writes: 1)
            // An item is sealed before the transaction, so its key is loaded before.
            case .add: .init(reads: isPasscodeSet ? 1 : 0, writes: 1)
            }
        }

        fileprivate func make(on keychain: SealedKeychain) throws(KeychainFailure) {
            let attributes = ItemAttributes([.account: .string("kept"), .service: .string("test")])
            let query = ItemQuery(itemClass: .genericPassword, attributes: attributes)
            switch self {
            case .find: _ = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
            case .findMissing:
                let missing = ItemAttributes([.account: .string("missing"), .service: .string("test")])
                do throws(KeychainFailure) {
                    _ = try keychain.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword, attributes: missing)))
                } catch {
                    guard error.status == .itemNotFound else { throw error }
                }
            case .update: try keychain.update(UpdateRequest(query: query, secret: Data("changed".utf8)))
            case .delete: try keychain.delete(DeleteRequest(query: query))
            case .add:
                let other = ItemAttributes([.account: .string("other"), .service: .string("test")])
                _ = try keychain.add(AddRequest(itemClass: .genericPassword, attributes: other, secret: Data("new".utf8)))
            }
        }
    }

    private static let holders: [KeyHolderSelection] = KernelKeyHolder.isPossible ? [.kernelKeyring, .processMemory] : [.processMemory]

    /// Runs `body` with an unlocked keychain that has the item `kept`, and with the keys that it holds in this process.
    private func withUnlockedKeychain(
        _ holder: KeyHolderSelection, _ body: (LocalKeychain, _ home: String, ProcessMemoryKeys) throws -> Void
    ) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            // Without the thread that watches the shared keys: it uses connections too.
            let keys = ProcessMemoryKeys(time: SystemContinuousTime())
            let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: holder) { $0.processKeys = keys }
            defer { keychain.forgetKeys() }
            try keychain.addItem("kept", "secret of kept")
            try keychain.set("swordfish")
            try body(keychain, home, keys)
        }
    }

    /// Returns the keybag with a key holder for `store`.
    private func keybag(
        of opened: OpenedStore, _ store: any ItemStore, _ selection: KeyHolderSelection, _ keys: ProcessMemoryKeys
    ) throws -> OpenKeybag {
        let holder = try selection.makeHolder(
            storeID: opened.store.storeID, epochSource: { () throws(KeychainFailure) in try store.lockEpoch() }, processKeys: keys)
        return try OpenKeybag(
            copies: opened.store.keybag().copies, storeID: opened.store.storeID, deviceSecret: opened.deviceSecret, holder: holder)
    }

    private func connectionCount(_ home: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { descriptor in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + descriptor)) == home + "/keychain.db"
        }
    }

    @Test("A read uses one connection", arguments: holders)
    func connections(holder: KeyHolderSelection) throws {
        try withUnlockedKeychain(holder) { _, home, keys in
            let reader = try LocalKeychain.withCheapPasscode(home: home, holder: holder) { $0.processKeys = keys }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try reader.secret(of: "missing") }
            let before = try connectionCount(home)
            #expect(before > 0)
            #expect(try reader.secret(of: "kept") == "secret of kept")
            #expect(try connectionCount(home) == before)
        }
    }

    @Test("A keychain that gives its memory back while it is not used stays unlocked", arguments: holders)
    func unusedKeychain(holder: KeyHolderSelection) throws {
        try withUnlockedKeychain(holder) { _, home, keys in
            let reader = try LocalKeychain.withCheapPasscode(home: home, holder: holder) { $0.processKeys = keys }
            #expect(try reader.secret(of: "kept") == "secret of kept")
            #expect(!reader.releaseMemoryIfUnused())
            #expect(reader.releaseMemoryIfUnused())
            #expect(try reader.sessionStatus().state == .unlocked)
            #expect(try reader.secret(of: "kept") == "secret of kept")
        }
    }

    @Test("With a passcode", arguments: holders, Call.allCases)
    func withPasscode(holder: KeyHolderSelection, call: Call) throws {
        try withUnlockedKeychain(holder) { _, home, keys in
            let opened = try OpenedStore(home: home)
            let store = SessionCountingStore(opened.store)
            let keybag = try self.keybag(of: opened, store, holder, keys)
            try call.make(on: opened.keychain(keys: keybag, store: store))
            #expect(store.counts == call.expected(isPasscodeSet: true))
        }
    }

    @Test("After a lock by a process with another keyring, no call uses the held keys", arguments: holders, [Call.find, .update, .add])
    func lockedElsewhere(holder: KeyHolderSelection, call: Call) throws {
        try withUnlockedKeychain(holder) { _, home, keys in
            let opened = try OpenedStore(home: home)
            let keybag = try self.keybag(of: opened, opened.store, holder, keys)
            let keychain = opened.keychain(keys: keybag)
            try opened.store.advanceLockEpoch(.whenUnlocked)
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try call.make(on: keychain) }
        }
    }

    @Test("A call from before a lock neither uses nor removes the keys of an unlock after it", arguments: holders)
    func overlappingCall(holder: KeyHolderSelection) throws {
        try withUnlockedKeychain(holder) { keychain, home, keys in
            let opened = try OpenedStore(home: home)
            let keybag = try self.keybag(of: opened, opened.store, holder, keys)
            let generation = try keybag.currentGeneration(for: .whenUnlocked)
            try opened.store.read { reading throws(KeychainFailure) in
                // The first statement begins the snapshot.
                _ = try reading.keybag()
                try keychain.lock(.whenUnlocked)
                try keychain.unlock(with: "swordfish")
                #expect(keybag.availability(of: .whenUnlocked, generation: generation, lockEpoch: reading) == .locked)
            }
            #expect(keybag.availability(of: .whenUnlocked, generation: generation, lockEpoch: opened.store) == .available)
        }
    }

    @Test("Without a passcode", arguments: Call.allCases)
    func withoutPasscode(call: Call) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            try LocalKeychain(home: home).addItem("kept", "secret of kept")
            let opened = try OpenedStore(home: home)
            let store = SessionCountingStore(opened.store)
            try call.make(on: opened.keychain(store: store))
            #expect(store.counts == call.expected(isPasscodeSet: false))
        }
    }
}
