// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Synchronization
import ServedKeychain
import Testing
import Valet

private struct Token: Codable, Equatable, Sendable {
    var text: String
    var isExpired = false
}

extension ValetKey<Token> {
    fileprivate static let token = ValetKey("token")
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func increase() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}

/// A gate at which threads and tasks wait.
private final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivalCount = 0
        var waitingTasks: [CheckedContinuation<Void, Never>] = []
    }

    private let condition = NSCondition()
    // Guarded by `condition`.
    nonisolated(unsafe) private var state = State()

    /// Blocks the thread until the gate is open.
    func pass() {
        condition.withLock {
            unsafe state.arrivalCount += 1
            condition.broadcast()
            while unsafe !state.isOpen { condition.wait() }
        }
    }

    /// Suspends the task until the gate is open.
    func passTask() async {
        await withCheckedContinuation { continuation in
            let isOpen = condition.withLock {
                unsafe state.arrivalCount += 1
                condition.broadcast()
                if unsafe !state.isOpen { unsafe state.waitingTasks.append(continuation) }
                return unsafe state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let tasks = condition.withLock {
            unsafe state.isOpen = true
            condition.broadcast()
            defer { unsafe state.waitingTasks = [] }
            return unsafe state.waitingTasks
        }
        for task in tasks { task.resume() }
    }

    /// Waits, on a thread of its own, until so many threads or tasks have arrived.
    func arrivals(_ count: Int) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                condition.withLock { while unsafe state.arrivalCount < count { condition.wait() } }
                continuation.resume()
            }
        }
    }
}

@Suite("Asynchronous forms", .keychain(accessGroups: testAccessGroups), .timeLimit(.minutes(10)))
struct AsynchronousValetTests {
    private let vault = Valet.valet(with: "asynchronous", accessibility: .whenUnlocked)

    @MainActor
    private func exercise(_ store: some SecretStore, prompts: (Int) -> Void) async throws {
        let valet = store.asynchronously
        #expect(try await valet.canAccessKeychain())
        try await valet.setString("swordfish", forKey: "text")
        #expect(try await !valet.addObject(Data([1]), forKey: "text"))
        #expect(try await valet.addObject(Data([1]), forKey: "data"))
        try await valet.setObject(Data([2]), forKey: "data")
        #expect(try await valet.containsObject(forKey: "data"))
        try await valet.set(Token(text: "1"), for: .token)
        #expect(try await valet.containsValue(for: .token))
        prompts(6)
        #expect(try await valet.string(forKey: "text", withPrompt: "why") == "swordfish")
        #expect(try await valet.object(forKey: "data") == Data([2]))
        try await valet.modifyObject(forKey: "data") { $0?.append(3) }
        #expect(try await valet.value(for: .token) == Token(text: "1"))
        #expect(try await valet.update(.token) { $0.text = "2" } == Token(text: "2"))
        #expect(try await valet.valueIfPresent(for: .token)?.text == "2")
        try await valet.removeValue(for: .token)
        #expect(try await valet.valueIfPresent(for: .token) == nil)
        try await valet.removeObject(forKey: "data")
        await #expect(throws: KeychainError.itemNotFound) { try await valet.object(forKey: "data") }
        await #expect(throws: ValetFailure.self) { try await valet.set(Token(text: "1"), for: ValetKey<Token>("text"), onlyIfAbsent: true) }
        try await valet.removeAllObjects()
        #expect(try await !valet.containsObject(forKey: "text"))
    }

    @Test("All kinds of valets have them, with their prompts, also for the main actor")
    func forms() async throws {
        try await exercise(vault) { _ in }
        let keychain = try keychainWithPasscode()
        try await exercise(Valet.iCloudValet(with: "asynchronous", accessibility: .whenUnlocked)) { _ in }
        try await exercise(try enclaveValet()) { keychain.person.answers(.correctPasscode, times: $0) }
        #expect(keychain.person.questions.count == 6)
        let single = try singlePromptValet("asynchronous")
        try await exercise(single) { _ in keychain.person.answers(.correctPasscode) }
        try single.setString("a", forKey: "key")
        #expect(try await single.asynchronously.allKeys(userPrompt: "list") == ["key"])
        try vault.setString("a", forKey: "key")
        #expect(try await vault.asynchronously.allKeys() == ["key"])
        let copy = Valet.valet(with: "copy", accessibility: .whenUnlocked)
        let vault = vault
        try await copy.asynchronously.run { try $0.migrateObjects(from: vault, removeOnCompletion: true) }
        #expect(try copy.allKeys() == ["key"] && vault.allKeys().isEmpty)
    }

    @Test("Prompts hold none of Swift's threads while a person thinks")
    func prompts() async throws {
        let keychain = try keychainWithPasscode()
        let enclave = try enclaveValet()
        try enclave.setString("swordfish", forKey: "key")
        let gate = Gate()
        // More than the threads of the cooperative pool. A question for a passcode is asked again after a wrong one, and not after a cancellation.
        let count = 2 * ProcessInfo.processInfo.activeProcessorCount + 2
        for _ in 0..<count {
            keychain.prompter.then(
                .decide { _ in
                    gate.pass()
                    return .cancel
                })
        }
        let reads = (0..<count).map { _ in Task { try await enclave.asynchronously.string(forKey: "key") } }
        await gate.arrivals(1)
        // All prompts are open or wait for one; the other tasks run nevertheless.
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 1...100 { group.addTask { number } }
            return await group.reduce(0, +)
        }
        #expect(sum == 5_050)
        // Another test's keychain has another person.
        try withInMemoryKeychain {
            let other = try keychainWithPasscode()
            other.person.answers(.correctPasscode)
            let luggage = try enclaveValet()
            try luggage.setString("12345", forKey: "key")
            #expect(try luggage.string(forKey: "key") == "12345")
        }
        gate.open()
        for read in reads { await #expect(throws: KeychainError.userCancelled) { try await read.value } }
    }

    @Test("Calls that wait for a person do not delay the calls of valets that never prompt")
    func promptsAndOtherCalls() async throws {
        _ = try keychainWithPasscode()
        let enclave = try enclaveValet()
        try vault.setString("swordfish", forKey: "key")
        let gate = Gate()
        // The number of calls that run at the same time.
        let waiting = (0..<64).map { _ in Task { try await enclave.asynchronously.run { _ in gate.pass() } } }
        await gate.arrivals(64)
        #expect(try await vault.asynchronously.string(forKey: "key") == "swordfish")
        #expect(try await vault.coding(with: JSONValetCoder()).asynchronously.containsObject(forKey: "key"))
        gate.open()
        for call in waiting { try await call.value }
    }

    @Test("A cancellation ends the wait, not the call")
    func cancellation() async throws {
        let gate = Gate()
        let ended = Gate()
        let store = Task {
            try await vault.asynchronously.run { vault in
                gate.pass()
                try vault.setString("stored", forKey: "key")
                ended.pass()
            }
        }
        await gate.arrivals(1)
        store.cancel()
        await #expect(throws: CancellationError.self) { try await store.value }
        #expect(try !vault.containsObject(forKey: "key"))
        gate.open()
        await ended.arrivals(1)
        ended.open()
        #expect(try vault.string(forKey: "key") == "stored")
        let canceled = Task {
            while !Task.isCancelled { await Task.yield() }
            try await vault.asynchronously.setString("not begun", forKey: "key")
        }
        canceled.cancel()
        await #expect(throws: CancellationError.self) { try await canceled.value }
        #expect(try vault.string(forKey: "key") == "stored")
    }
}

@Suite("Renewing an expired value", .keychain(accessGroups: testAccessGroups), .timeLimit(.minutes(10)))
struct RefreshTests {
    private struct ServerDown: Error {}

    private let vault = Valet.valet(with: "refresh", accessibility: .whenUnlocked)
    private let expired = Token(text: "old", isExpired: true)

    @Test("A value that has not expired is returned as it is, and an absent one is an error")
    func noRenewal() async throws {
        let failure = await #expect(throws: ValetFailure.self) {
            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in throw ServerDown() }
        }
        #expect(failure?.reason == .notFound)
        try vault.set(Token(text: "fresh"), for: .token)
        #expect(try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in throw ServerDown() }.text == "fresh")
        #expect(try RawItems.all().count == 1)
    }

    @Test("Of many tasks one renews, and all get its result; nothing but the value remains")
    func oneRenewal() async throws {
        try vault.set(expired, for: .token)
        let count = Counter()
        let results = try await withThrowingTaskGroup(of: Token.self) { group in
            for _ in 0..<32 {
                group.addTask {
                    try await vault.asynchronously.refresh(.token, if: \.isExpired) { old in
                        #expect(old == expired)
                        return Token(text: "renewal \(count.increase())")
                    }
                }
            }
            return try await group.reduce(into: [Token]()) { $0.append($1) }
        }
        #expect(results == Array(repeating: Token(text: "renewal 1"), count: 32))
        #expect(try vault.allKeys() == ["token"])
        #expect(try RawItems.all().count == 1)
    }

    @Test("If a renewal fails, its task gets the error, and the next one renews")
    func failedRenewal() async throws {
        try vault.set(expired, for: .token)
        let count = Counter()
        let outcomes = await withTaskGroup(of: Result<Token, any Error>.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    do {
                        return .success(
                            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                                guard count.increase() > 2 else { throw ServerDown() }
                                return Token(text: "new")
                            })
                    } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: [Result<Token, any Error>]()) { $0.append($1) }
        }
        #expect(outcomes.filter { (try? $0.get())?.text == "new" }.count == 2)
        #expect(count.value == 3)
        #expect(try RawItems.all().count == 1)
    }

    @Test("A canceled task ends its renewal, and stores one that the server has already made")
    func canceledRenewal() async throws {
        try vault.set(expired, for: .token)
        let gate = Gate()
        let canceled = Task {
            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                await gate.passTask()
                return Token(text: "new")
            }
        }
        await gate.arrivals(1)
        canceled.cancel()
        gate.open()
        #expect(try await canceled.value.text == "new")
        #expect(try vault.value(for: .token).text == "new")
        #expect(try RawItems.all().count == 1)
    }

    @Test("A task that is canceled before it renews holds up no other one")
    func canceledBeforeRenewal() async throws {
        try vault.set(expired, for: .token)
        for _ in 0..<20 {
            let canceled = Task {
                try await vault.asynchronously.refresh(.token, if: \.isExpired, timeoutSeconds: 600) { _ in throw ServerDown() }
            }
            canceled.cancel()
            await #expect(throws: (any Error).self) { try await canceled.value }
            // A lease that is left behind would be waited for ten minutes.
            #expect(try RawItems.all().count == 1)
        }
    }

    @Test("A renewed value that counts as expired already is not renewed once more by each task that has waited")
    func expiredAgain() async throws {
        try vault.set(expired, for: .token)
        let count = Counter()
        let gate = Gate()
        let renewing = Task {
            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                await gate.passTask()
                return Token(text: "renewal \(count.increase())", isExpired: true)
            }
        }
        await gate.arrivals(1)
        let waiting = (0..<8).map { _ in
            Task {
                try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                    Token(text: "renewal \(count.increase())", isExpired: true)
                }
            }
        }
        gate.open()
        #expect(try await renewing.value.text == "renewal 1")
        for task in waiting { _ = try await task.value }
        // A task that began after the renewal cannot know of it.
        #expect(try await waiting[0].value.isExpired && count.value <= 9)
    }

    @Test("A renewed value is not lost if the expired one was changed meanwhile")
    func changedExpiredValue() async throws {
        try vault.set(expired, for: .token)
        let count = Counter()
        let renewed = try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
            _ = count.increase()
            try vault.update(.token) { $0.text += ", used" }
            return Token(text: "new")
        }
        #expect(renewed.text == "new" && count.value == 1)
        #expect(try vault.value(for: .token).text == "new")
    }

    @Test("A value that is stored or removed during a renewal is not replaced", arguments: [true, false])
    func changedMeanwhile(isStored: Bool) async throws {
        try vault.set(expired, for: .token)
        let gate = Gate()
        let refresh = Task {
            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                await gate.passTask()
                return Token(text: "renewed")
            }
        }
        await gate.arrivals(1)
        if isStored { try vault.set(Token(text: "signed in again"), for: .token) } else { try vault.removeValue(for: .token) }
        gate.open()
        if isStored {
            #expect(try await refresh.value.text == "signed in again")
        } else {
            await #expect(throws: ValetFailure.self) { try await refresh.value }
        }
        #expect(try vault.valueIfPresent(for: .token)?.text == (isStored ? "signed in again" : nil))
    }

    @Test("A renewal beyond its time is taken over, and the value that is stored first remains")
    func takenOver() async throws {
        try vault.set(expired, for: .token)
        let gate = Gate()
        let slow = Task {
            try await vault.asynchronously.refresh(.token, if: \.isExpired, timeoutSeconds: 1) { _ in
                await gate.passTask()
                return Token(text: "slow")
            }
        }
        await gate.arrivals(1)
        #expect(try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in Token(text: "fast") }.text == "fast")
        gate.open()
        #expect(try await slow.value.text == "fast")
        #expect(try vault.value(for: .token).text == "fast")
        #expect(try RawItems.all().count == 1)
    }

    @Test(
        "A note that another process has left is abandoned after its time, also if the machine was started meanwhile",
        arguments: [(-10, 60), (0, 60), (9e9, 1), (9e9, -1e300), nil] as [(expiresIn: Double, timeoutSeconds: Double)?])
    func leftNote(_ note: (expiresIn: Double, timeoutSeconds: Double)?) async throws {
        struct Note: Codable {
            var identifier = UUID()
            let expiration: SuspendingClock.Instant
            let timeoutSeconds: Double
        }
        try vault.set(expired, for: .token)
        let bytes = try note.map {
            try JSONEncoder().encode(Note(expiration: .now.advanced(by: .seconds($0.expiresIn)), timeoutSeconds: $0.timeoutSeconds))
        }
        try vault.renewalStore.setObject(bytes ?? Data("not a note".utf8), forKey: "renewal of token")
        #expect(try vault.allKeys() == ["token"])
        let fresh = try await vault.asynchronously.refresh(.token, if: \.isExpired, timeoutSeconds: .nan) { _ in Token(text: "new") }
        #expect(fresh.text == "new")
        #expect(try RawItems.all().count == 1)
    }

    @Test("Without a keychain that can be written, nothing is renewed")
    func readOnly() async throws {
        let keychain = try #require(InMemoryKeychain.current)
        try vault.set(expired, for: .token)
        keychain.fail(.writes, with: .inputOutput(isWritten: false))
        let failure = await #expect(throws: ValetFailure.self) {
            try await vault.asynchronously.refresh(.token, if: \.isExpired) { _ in
                Issue.record("renewed a value that cannot be stored")
                return Token(text: "new")
            }
        }
        #expect(failure?.status == errSecIO)
    }

    @Test("A valet that prompts once renews with one prompt")
    func singlePrompt() async throws {
        let keychain = try keychainWithPasscode()
        let single = try singlePromptValet("refresh")
        try single.set(expired, for: .token)
        keychain.person.answers(.correctPasscode)
        let refresh = single.asynchronously
        #expect(try await refresh.refresh(.token, if: \.isExpired, withPrompt: "renew") { _ in Token(text: "new") }.text == "new")
        #expect(keychain.person.questions.count == 1)
    }
}
#endif
