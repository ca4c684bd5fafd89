// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Synchronization
import Testing

@Suite("Types that replace the functions of the protocols", .inMemoryKeychain)
struct OverridingTests {
    @Test("The functions of a type are called through each protocol")
    func existentials() throws {
        let double = Double()
        let createable: any CreateableSecureStorable = double
        let readable: any ReadableSecureStorable = double
        let deleteable: any DeleteableSecureStorable = double
        try createable.createInSecureStore()
        try createable.updateInSecureStore()
        #expect(readable.readFromSecureStore() == nil)
        #expect(try readable.tryReadFromSecureStore() == nil)
        try deleteable.deleteFromSecureStore()
        #expect(double.calls.all == ["create", "update", "read", "tryRead", "delete"])
        #expect(try RawItems.all().isEmpty)
    }

    @Test("The functions of a type are called by generic code")
    func generics() throws {
        func use<Item: CreateableSecureStorable & ReadableSecureStorable & DeleteableSecureStorable>(_ item: Item) throws {
            try item.createInSecureStore()
            try item.updateInSecureStore()
            let result: (any SecureStorableResultType)? = item.readFromSecureStore()
            #expect(result == nil)
            try item.deleteFromSecureStore()
        }
        let double = Double()
        try use(double)
        #expect(double.calls.all == ["create", "update", "read", "delete"])
    }

    @Test("The functions of a type are called by the asynchronous forms")
    func asynchronous() async throws {
        let double = Double()
        try await double.asynchronously.createInSecureStore()
        try await double.asynchronously.updateInSecureStore()
        try await double.asynchronously.deleteFromSecureStore()
        #expect(double.calls.all == ["create", "update", "delete"])
    }

    @Test("A wrapper can call the functions that it replaces")
    func wrapper() throws {
        struct Wrapper: GenericPasswordSecureStorable, ReadableSecureStorable {
            let account = "Skroob"
            let service = "Druidia"
            let calls = Calls()

            func readFromSecureStore() -> (any SecureStorableResultType)? {
                calls.record("read")
                let result: (any GenericPasswordSecureStorableResultType)? = readFromSecureStore()
                return result
            }
        }
        try GenericPassword().createInSecureStore()
        let wrapper = Wrapper()
        let result = (wrapper as any ReadableSecureStorable).readFromSecureStore()
        #expect(result?.data?["secret"] as? String == "12345")
        #expect(wrapper.calls.all == ["read"])
    }

    @Test("A Codable value is read by the function of its type")
    func payload() throws {
        struct Value: CodableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = String
            let account = "Skroob"
            let service = "Druidia"
            func tryReadFromSecureStore() throws -> (any SecureStorableResultType)? { throw LocksmithError.decode }
        }
        #expect(throws: LocksmithError.decode) { try Value().readPayloadFromSecureStore() }
    }
}

@Suite("Updates of the same item by others", .inMemoryKeychain)
struct InterleavedUpdateTests {
    @Test(
        "Data is stored although the item is removed before each update and added before each add",
        arguments: [1, 2, 8, 9, 100])
    func interleaving(rounds: Int) throws {
        let contested = Contested(rounds: Calls(limit: rounds))
        try contested.updateInSecureStore()
        #expect(contested.rounds.all.count == rounds)
        #expect(GenericPassword().readFromSecureStore()?.data?["secret"] as? String == "contested")
    }

    @Test("Closures that contradict each other end in an error")
    func contradiction() {
        struct Contradiction: CreateableSecureStorable, GenericPasswordSecureStorable {
            let account = "Skroob"
            let service = "Druidia"
            let data: [String: Any] = [:]
            var performCreateRequestClosure: PerformRequestClosureType { { _, _ in errSecDuplicateItem } }
            var performUpdateRequestClosure: PerformUpdateRequestClosureType { { _, _ in errSecItemNotFound } }
        }
        #expect(throws: LocksmithError.duplicate) { try Contradiction().updateInSecureStore() }
    }

    /// An item that another process removes before each update and adds before each add.
    private struct Contested: CreateableSecureStorable, GenericPasswordSecureStorable {
        let account = "Skroob"
        let service = "Druidia"
        let data: [String: Any] = ["secret": "contested"]
        let rounds: Calls

        var performUpdateRequestClosure: PerformUpdateRequestClosureType {
            { query, attributes in
                if !rounds.isFull { try? GenericPassword().deleteFromSecureStore() }
                return GenericPassword().performUpdateRequestClosure(query, attributes)
            }
        }

        var performCreateRequestClosure: PerformRequestClosureType {
            { request, result in
                if rounds.record("add") { try? GenericPassword().createInSecureStore() }
                return GenericPassword().performCreateRequestClosure(request, &result)
            }
        }
    }
}

/// An item of a program's own test: it records calls and uses no keychain.
private struct Double: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, GenericPasswordSecureStorable {
    let account = "Skroob"
    let service = "Druidia"
    var data: [String: Any] { [:] }
    let calls = Calls()

    func createInSecureStore() throws { calls.record("create") }

    func updateInSecureStore() throws { calls.record("update") }

    func readFromSecureStore() -> (any SecureStorableResultType)? {
        calls.record("read")
        return nil
    }

    func tryReadFromSecureStore() throws -> (any SecureStorableResultType)? {
        calls.record("tryRead")
        return nil
    }

    func deleteFromSecureStore() throws { calls.record("delete") }
}

/// The names of calls, in order.
private final class Calls: Sendable {
    private let limit: Int
    private let names = Mutex<[String]>([])

    init(limit: Int = .max) { self.limit = limit }

    var all: [String] { names.withLock { $0 } }
    var isFull: Bool { all.count == limit }

    /// Records a call; returns false if the limit is reached.
    @discardableResult func record(_ name: String) -> Bool {
        names.withLock { names in
            guard names.count < limit else { return false }
            names.append(name)
            return true
        }
    }
}
