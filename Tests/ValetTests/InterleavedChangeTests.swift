// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainServices
import KeychainTesting
import ServedKeychain
import Synchronization
import Testing
import Valet

@Suite("Changes of the same item by others", .keychain(accessGroups: testAccessGroups))
struct InterleavedChangeTests {
    @Test(
        "A value is stored although the item is removed before each update and added before each add",
        arguments: [1, 2, 8, 9, 100])
    func interleaving(rounds: Int) throws {
        let valet = try valet()
        let keychain = InterleavingKeychain(base: try #require(CurrentKeychain.bound), rounds: rounds) { change in
            switch change {
            case .removal: try valet.removeObject(forKey: "Skroob")
            case .addition: try valet.setString("of another process", forKey: "Skroob")
            }
        }
        try CurrentKeychain.with(keychain) { try valet.setString("12345", forKey: "Skroob") }
        #expect(keychain.remainingRounds == 0)
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("An item of another accessibility is recognized by looking at it, and not by trying again")
    func otherAccessibility() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        let keychain = InterleavingKeychain(base: try #require(CurrentKeychain.bound), rounds: 0) { _ in }
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try CurrentKeychain.with(keychain) { try new.setString("54321", forKey: "Skroob") }
        }
        #expect(keychain.updateCount == 1)
        #expect(try old.string(forKey: "Skroob") == "12345")
    }

    @Test("Many tasks that store and remove the same key all succeed")
    func concurrentTasks() async throws {
        let valet = try valet()
        for _ in 0..<10 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<50 {
                    group.addTask { try valet.setString("\(task)", forKey: "Skroob") }
                    group.addTask { try valet.removeObject(forKey: "Skroob") }
                }
                try await group.waitForAll()
            }
        }
    }
}

/// A keychain that another process changes between two calls of this one.
private final class InterleavingKeychain: Keychain {
    enum Change { case removal, addition }

    private let base: any Keychain
    private let makeChange: @Sendable (Change) throws -> Void
    private let counts: Mutex<(rounds: Int, updates: Int)>

    var remainingRounds: Int { counts.withLock { $0.rounds } }
    var updateCount: Int { counts.withLock { $0.updates } }

    init(base: any Keychain, rounds: Int, makeChange: @escaping @Sendable (Change) throws -> Void) {
        self.base = base
        self.makeChange = makeChange
        counts = Mutex((rounds, 0))
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        counts.withLock { $0.updates += 1 }
        if remainingRounds > 0 { try change(.removal) }
        try base.update(request)
    }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        let isInRound = counts.withLock { counts in
            guard counts.rounds > 0 else { return false }
            counts.rounds -= 1
            return true
        }
        if isInRound { try change(.addition) }
        return try base.add(request)
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] { try base.copyMatching(request) }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) { try base.delete(request) }

    private func change(_ change: Change) throws(KeychainFailure) {
        do {
            try CurrentKeychain.with(base) { try makeChange(change) }
        } catch {
            throw KeychainFailure(.internal, "the interleaved change failed")
        }
    }
}
