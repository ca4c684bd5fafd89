// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainTestingTraits
import Locksmith
import Testing

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
        #expect(try await locksmith.userAccounts() == ["Skroob"])
        try await locksmith.deleteDataForUserAccount("Skroob")
        await #expect(throws: LocksmithError.notFound) { try await locksmith.deleteDataForUserAccount("Skroob") }
        await #expect(throws: LocksmithError.unarchivable) {
            try await locksmith.saveData(["photo": NSObject()], forUserAccount: "Skroob")
        }
    }

    @Test("Both sorts of passwords")
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
    }

    @Test("Values of a type of one's own")
    func payloads() async throws {
        let account = CodableSecureStorableTests.Account(account: "Skroob")
        try await account.asynchronously.createInSecureStore(payload: .init(password: "12345"))
        try await account.asynchronously.updateInSecureStore(payload: .init(password: "54321"))
        #expect(try await account.asynchronously.readPayloadFromSecureStore()?.password == "54321")
    }

    @Test("Results can be handed from task to task")
    func sendable() async throws {
        try GenericPassword(label: "Work").createInSecureStore()
        let result = try #require(try GenericPassword().tryReadFromSecureStore())
        let label = await Task.detached { result.label }.value
        #expect(label == "Work")
    }

    @Test("Code that is asynchronous itself can call the synchronous forms")
    func synchronousForms() async throws {
        try GenericPassword().createInSecureStore()
        #expect(GenericPassword().readFromSecureStore()?.account == "Skroob")
    }
}
