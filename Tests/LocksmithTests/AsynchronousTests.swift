// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@testable import Locksmith

@MainActor
@Suite("Asynchronous forms, called from the main actor", .inMemoryKeychain)
struct AsynchronousTests {
    @Test("Data of an account")
    func facade() async throws {
        let locksmith = Locksmith.asynchronously
        #expect(try await locksmith.tryLoadDataForUserAccount("Skroob") == nil)
        try await locksmith.saveData(["combination": 12345], forUserAccount: "Skroob")
        #expect(try await locksmith.tryLoadDataForUserAccount("Skroob")?["combination"] as? Int == 12345)
        try await locksmith.updateData(["combination": 54321], forUserAccount: "Skroob")
        #expect(Locksmith.loadDataForUserAccount("Skroob")?["combination"] as? Int == 54321)
        #expect(await locksmith.loadDataForUserAccount("Skroob")?["combination"] as? Int == 54321)
        #expect(try await locksmith.userAccounts() == ["Skroob"])
        try await locksmith.deleteDataForUserAccount("Skroob")
        await #expect(throws: LocksmithError.notFound) { try await locksmith.deleteDataForUserAccount("Skroob") }
        try await locksmith.saveData([:], forUserAccount: "Skroob", inService: "Druidia")
        try await locksmith.updateData(["combination": 1], forUserAccount: "Skroob", inService: "Druidia")
        #expect(await locksmith.loadDataForUserAccount("Skroob", inService: "Druidia")?["combination"] as? Int == 1)
        #expect(try await locksmith.tryLoadDataForUserAccount("Skroob") == nil)
        #expect(try await locksmith.userAccounts(inService: "Druidia") == ["Skroob"])
        try await locksmith.deleteDataForUserAccount("Skroob", inService: "Druidia")
        #expect(try RawItems.all().isEmpty)
        try #require(RawItems.add(GenericPassword().asDeleteableSecureStoragePropertyDictionary) == errSecSuccess)
        await #expect(throws: LocksmithError.decode) { try await locksmith.tryLoadDataForUserAccount("Skroob", inService: "Druidia") }
        await #expect(throws: LocksmithError.unarchivable) {
            try await locksmith.saveData(["photo": NSObject()], forUserAccount: "Skroob")
        }
    }

    @Test("Both kinds of passwords")
    func passwords() async throws {
        try await GenericPassword().asynchronously.createInSecureStore()
        try await GenericPassword(secret: "54321").asynchronously.updateInSecureStore()
        let generic = try await GenericPassword().asynchronously.tryReadFromSecureStore()
        #expect(generic?.service == "Druidia")
        #expect(generic?.data?["secret"] as? String == "54321")
        try await GenericPassword().asynchronously.deleteFromSecureStore()
        #expect(try await GenericPassword().asynchronously.tryReadFromSecureStore() == nil)

        try await InternetPassword().asynchronously.createInSecureStore()
        #expect(try await InternetPassword().asynchronously.tryReadFromSecureStore()?.port == 443)
        #expect(await InternetPassword().asynchronously.readFromSecureStore()?.port == 443)
        #expect(await GenericPassword().asynchronously.readFromSecureStore() == nil)
    }

    @Test("Values of a custom type")
    func payloads() async throws {
        let account = CodableSecureStorableTests.Account(account: "Skroob")
        try await account.asynchronously.createInSecureStore(payload: .init(password: "12345"))
        try await account.asynchronously.updateInSecureStore(payload: .init(password: "54321"))
        #expect(try await account.asynchronously.readPayloadFromSecureStore()?.password == "54321")
    }

    @Test("Calls that wait for the keychain do not block other tasks")
    func waiting() async throws {
        let gate = Gate()
        // More than the threads of the cooperative pool.
        let reads = (0..<12).map { _ in Task { try await Waiting(gate: gate).asynchronously.tryReadFromSecureStore() } }
        let opener = Task.detached {
            for await _ in gate.arrivals.prefix(12) {}
            gate.open()
        }
        await opener.value
        for read in reads { #expect(try await read.value == nil) }
        #expect(!gate.hasTimedOut)
    }

    /// A value that is read only after other tasks had the opportunity to run.
    private struct Waiting: GenericPasswordSecureStorable, ReadableSecureStorable, Sendable {
        let account = "Skroob"
        let service = "Druidia"
        let gate: Gate
        var performReadRequestClosure: PerformRequestClosureType {
            { _, _ in
                gate.pass()
                return errSecItemNotFound
            }
        }
    }

    // Unchecked: `condition` guards the variables.
    private final class Gate: @unchecked Sendable {
        private let condition = NSCondition()
        /// An element for each thread that waits; ends when one has waited in vain.
        let arrivals: AsyncStream<Void>
        private let arrival: AsyncStream<Void>.Continuation
        private var isOpen = false
        private var timedOut = false

        init() { (arrivals, arrival) = AsyncStream.makeStream() }

        var hasTimedOut: Bool { condition.withLock { timedOut } }

        func pass() {
            condition.lock()
            defer { condition.unlock() }
            arrival.yield()
            let end = Date(timeIntervalSinceNow: 30)
            while !isOpen {
                guard condition.wait(until: end) else {
                    timedOut = true
                    arrival.finish()
                    return
                }
            }
        }

        func open() {
            condition.lock()
            defer { condition.unlock() }
            isOpen = true
            condition.broadcast()
        }
    }

    @Test("Results can be sent between tasks")
    func sendable() async throws {
        try GenericPassword(label: "Work").createInSecureStore()
        let result = try #require(try GenericPassword().tryReadFromSecureStore())
        let label = await Task.detached { result.label }.value
        #expect(label == "Work")
    }

    @Test("Asynchronous code can call the synchronous forms")
    func synchronousForms() async throws {
        try GenericPassword().createInSecureStore()
        #expect(GenericPassword().readFromSecureStore()?.account == "Skroob")
    }
}
