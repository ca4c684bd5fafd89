// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainTestingTraits
import Locksmith
import Testing

/// The examples of Locksmith's introduction.
///
/// Updated for current Swift: `Any` instead of `AnyObject`, `Data` instead of `NSData`, and a case of an enumeration
/// with its type.
@Suite("The examples of the introduction", .inMemoryKeychain)
struct SeedExampleTests {
    @Test("Quick start")
    func quickStart() throws {
        try Locksmith.saveData(["some key": "some value"], forUserAccount: "myUserAccount")

        let dictionary = Locksmith.loadDataForUserAccount("myUserAccount")
        #expect(dictionary?["some key"] as? String == "some value")

        try Locksmith.updateData(["some key": "another value"], forUserAccount: "myUserAccount")
        #expect(Locksmith.loadDataForUserAccount("myUserAccount")?["some key"] as? String == "another value")

        try Locksmith.deleteDataForUserAccount("myUserAccount")
        #expect(Locksmith.loadDataForUserAccount("myUserAccount") == nil)
    }

    @Test("Update adds data that does not exist")
    func updateWrites() throws {
        try Locksmith.updateData(["some key": "another value"], forUserAccount: "myUserAccount")
        #expect(Locksmith.loadDataForUserAccount("myUserAccount")?["some key"] as? String == "another value")
    }

    @Test("A Twitter account that can be created")
    func create() throws {
        struct TwitterAccount: CreateableSecureStorable, GenericPasswordSecureStorable {
            let username: String
            let password: String

            // Required by GenericPasswordSecureStorable
            let service = "Twitter"
            var account: String { return username }

            // Required by CreateableSecureStorable
            var data: [String: Any] {
                return ["password": password]
            }
        }

        let account = TwitterAccount(username: "_matthewpalmer", password: "my_password")
        try account.createInSecureStore()

        #expect(try RawItems.only()["svce"] as? String == "Twitter")
    }

    @Test("A Twitter account that conforms to all three protocols")
    func allThree() throws {
        struct TwitterAccount: ReadableSecureStorable,
            CreateableSecureStorable,
            DeleteableSecureStorable,
            GenericPasswordSecureStorable
        {
            let username: String
            let password: String

            let service = "Twitter"
            var account: String { return username }
            var data: [String: Any] {
                return ["password": password]
            }
        }

        let account = TwitterAccount(username: "_matthewpalmer", password: "my_password")

        // CreateableSecureStorable lets us create the account in the keychain
        try account.createInSecureStore()

        // ReadableSecureStorable lets us read the account from the keychain
        let result = account.readFromSecureStore()
        #expect(result?.data?["password"] as? String == "my_password")
        #expect(result?.account == "_matthewpalmer")

        // DeleteableSecureStorable lets us delete the account from the keychain
        try account.deleteFromSecureStore()
        #expect(account.readFromSecureStore() == nil)
    }

    @Test("A Twitter account on the internet")
    func internetPassword() throws {
        struct TwitterAccount: InternetPasswordSecureStorable,
            ReadableSecureStorable,
            CreateableSecureStorable
        {
            let username: String
            let password: String

            var account: String { return username }
            var data: [String: Any] {
                return ["password": password]
            }

            let server = "com.twitter"
            let port = 80
            let internetProtocol: LocksmithInternetProtocol = .HTTPS
            let authenticationType: LocksmithInternetAuthenticationType = .HTTPBasic
            let path: String? = "/api/2.0/"
        }

        let account = TwitterAccount(username: "_matthewpalmer", password: "my_password")

        // Save all this to the keychain
        try account.createInSecureStore()

        // Now let’s get it back
        let result: InternetPasswordSecureStorableResultType? = account.readFromSecureStore()

        let port: Int? = result?.port
        #expect(port == 80)
        let internetProtocol: LocksmithInternetProtocol? = result?.internetProtocol
        #expect(internetProtocol == .HTTPS)
        let data: [String: Any]? = result?.data
        #expect(data?["password"] as? String == "my_password")
        #expect(result?.authenticationType == .HTTPBasic)
        #expect(result?.path == "/api/2.0/")
        #expect(result?.server == "com.twitter")
        #expect(result?.account == "_matthewpalmer")
    }

    @Test("Requests are performed by a type's own closures")
    func closures() throws {
        let account = WatchedAccount()
        try account.createInSecureStore()
        #expect(account.readFromSecureStore()?.data?["password"] as? String == "from the closure")
        try account.updateInSecureStore()
        try account.deleteFromSecureStore()
        #expect(account.performed.calls == ["create", "read", "update", "delete"])
        #expect(try RawItems.all().isEmpty)
    }

    @Test("A stored date is read as a date, and results have the documented attributes")
    func tables() throws {
        struct Note: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable {
            let account = "_matthewpalmer"
            let service = "Notes"
            var data: [String: Any] { ["written": Date(timeIntervalSinceReferenceDate: 1.5)] }
        }
        try Note().createInSecureStore()
        let result: GenericPasswordSecureStorableResultType? = Note().readFromSecureStore()
        #expect(result?.data?["written"] as? Date == Date(timeIntervalSinceReferenceDate: 1.5))
        let attributes: (String?, String?, UInt?, String?, Data?, Bool?, Bool?, String?, UInt?) = (
            result?.service, result?.comment, result?.creator, result?.description, result?.generic, result?.isInvisible,
            result?.isNegative,
            result?.label, result?.type
        )
        #expect(attributes.0 == "Notes")
        #expect(attributes.3 == nil)
    }

    /// Performs its requests without a keychain.
    private struct WatchedAccount: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable,
        GenericPasswordSecureStorable
    {
        let account = "_matthewpalmer"
        let service = "Twitter"
        let data: [String: Any] = ["password": "my_password"]
        let performed = Performed()

        var performCreateRequestClosure: PerformRequestClosureType {
            return { _, _ in
                performed.calls.append("create")
                return 0
            }
        }

        var performReadRequestClosure: PerformRequestClosureType {
            return { _, result in
                performed.calls.append("read")
                let value = asValue(["password": "from the closure"])
                result = ["v_Data": value] as AnyObject
                return 0
            }
        }

        var performUpdateRequestClosure: PerformUpdateRequestClosureType {
            return { _, _ in
                performed.calls.append("update")
                return 0
            }
        }

        var performDeleteRequestClosure: PerformRequestClosureType {
            return { _, _ in
                performed.calls.append("delete")
                return 0
            }
        }

        /// The value of an item that holds a dictionary.
        private func asValue(_ data: [String: Any]) -> Data {
            struct Other: CreateableSecureStorable, GenericPasswordSecureStorable {
                let account = ""
                let service = ""
                let data: [String: Any]
            }
            return Other(data: data).asCreateableSecureStoragePropertyDictionary["v_Data"] as? Data ?? Data()
        }
    }

    private final class Performed {
        var calls: [String] = []
    }
}
