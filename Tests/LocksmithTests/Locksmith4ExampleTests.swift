// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

/// The same examples in the spelling of programs written for Locksmith 4.0.
@Suite("The examples in the spelling of 4.0", .inMemoryKeychain)
struct Locksmith4ExampleTests {
    @Test("Quick start")
    func quickStart() throws {
        try Locksmith.saveData(data: ["some key": "some value"], forUserAccount: "myUserAccount")

        let dictionary = Locksmith.loadDataForUserAccount(userAccount: "myUserAccount")
        #expect(dictionary?["some key"] as? String == "some value")

        try Locksmith.updateData(data: ["some key": "another value"], forUserAccount: "myUserAccount")
        #expect(Locksmith.loadDataForUserAccount(userAccount: "myUserAccount")?["some key"] as? String == "another value")

        try Locksmith.deleteDataForUserAccount(userAccount: "myUserAccount")
        #expect(Locksmith.loadDataForUserAccount(userAccount: "myUserAccount") == nil)
    }

    @Test("Update adds data that does not exist")
    func updateWrites() throws {
        try Locksmith.updateData(data: ["some key": "another value"], forUserAccount: "myUserAccount")
        #expect(Locksmith.loadDataForUserAccount(userAccount: "myUserAccount")?["some key"] as? String == "another value")
    }

    @Test("A Twitter account that can only be created")
    func create() throws {
        struct TwitterAccount: CreateableSecureStorable, GenericPasswordSecureStorable {
            let username: String
            let password: String
            let service = "Twitter"
            var account: String { return username }
            var data: [String: Any] {
                return ["password": password]
            }
        }
        try TwitterAccount(username: "_matthewpalmer", password: "my_password").createInSecureStore()
        let account = Locksmith.loadDataForUserAccount(userAccount: "_matthewpalmer", inService: "Twitter")
        #expect(account?["password"] as? String == "my_password")
    }

    @Test("A stored date is read as a date, and the result has every attribute of a generic password")
    func results() throws {
        struct Note: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable {
            let account = "_matthewpalmer"
            let service = "Notes"
            let comment: String? = "comment"
            let creator: UInt? = 1
            let description: String? = "description"
            let generic: Data? = Data([1])
            let isInvisible: Bool? = true
            let isNegative: Bool? = false
            let label: String? = "label"
            let type: UInt? = 2
            var data: [String: Any] { return ["written": Date(timeIntervalSinceReferenceDate: 1.5)] }
        }
        try Note().createInSecureStore()
        let result = Note().readFromSecureStore()
        #expect(result?.data?["written"] as? Date == Date(timeIntervalSinceReferenceDate: 1.5))
        #expect(result?.account == "_matthewpalmer" && result?.service == "Notes" && result?.comment == "comment")
        #expect(result?.creator == 1 && result?.description == "description" && result?.generic == Data([1]))
        #expect(result?.isInvisible == true && result?.isNegative == false && result?.label == "label" && result?.type == 2)
    }

    @Test("The generic attribute can be declared as NSData, and is stored, searched for, and read as such")
    func genericAsNSData() throws {
        struct Constant: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let account = "_matthewpalmer"
            let service = "Notes"
            let generic: NSData? = NSData(data: Data([1, 2]))
            var data: [String: Any] { return ["text": "constant"] }
        }
        final class Computed: GenericPasswordSecureStorable, ReadableSecureStorable {
            let account = "_matthewpalmer"
            let service = "Notes"
            var generic: NSData? { return NSMutableData(data: Data([1, 3])) }
        }
        try Constant().createInSecureStore()
        #expect(try RawItems.only()[kSecAttrGeneric as String] as? Data == Data([1, 2]))
        let result = try #require(Constant().readFromSecureStore())
        let asNSData: NSData? = result.generic
        let asData: Data? = result.generic
        #expect(asNSData == NSData(data: Data([1, 2])) && asData == Data([1, 2]))
        #expect(Constant().asReadableSecureStoragePropertyDictionary[kSecAttrGeneric as String] as? Data == Data([1, 2]))
        #expect(Computed().asReadableSecureStoragePropertyDictionary[kSecAttrGeneric as String] as? Data == Data([1, 3]))
        #expect(Computed().readFromSecureStore() == nil, "No item has this attribute")
        try Constant().deleteFromSecureStore()
        #expect(try RawItems.all().isEmpty)
    }

    @Test("Quick start with a service")
    func services() throws {
        try Locksmith.saveData(data: ["some key": "some value"], forUserAccount: "myUserAccount", inService: "myService")
        #expect(Locksmith.loadDataForUserAccount(userAccount: "myUserAccount") == nil)
        #expect(Locksmith.loadDataForUserAccount(userAccount: "myUserAccount", inService: "myService") != nil)
        try Locksmith.updateData(data: ["some key": "another value"], forUserAccount: "myUserAccount", inService: "myService")
        try Locksmith.deleteDataForUserAccount(userAccount: "myUserAccount", inService: "myService")
        #expect(try RawItems.all().isEmpty)
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
            let accessible: LocksmithAccessibleOption? = .whenUnlockedThisDeviceOnly
        }

        let account = TwitterAccount(username: "_matthewpalmer", password: "my_password")
        try account.createInSecureStore()
        try account.updateInSecureStore()
        let result = account.readFromSecureStore()
        #expect(result?.data?["password"] as? String == "my_password")
        #expect(result?.accessible == .whenUnlockedThisDeviceOnly)
        try account.deleteFromSecureStore()
        do {
            try account.deleteFromSecureStore()
            Issue.record("There was nothing to delete")
        } catch LocksmithError.notFound {
            #expect(account.readFromSecureStore() == nil)
        }
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
            let internetProtocol = LocksmithInternetProtocol.https
            let authenticationType = LocksmithInternetAuthenticationType.httpBasic
            let path: String? = "/api/2.0/"
        }

        let account = TwitterAccount(username: "_matthewpalmer", password: "my_password")
        try account.createInSecureStore()
        let result: InternetPasswordSecureStorableResultType? = account.readFromSecureStore()
        #expect(result?.port == 80)
        #expect(result?.internetProtocol == .https)
        #expect(result?.data?["password"] as? String == "my_password")
        // Each result also conforms to the protocol of all results.
        let anyResult: SecureStorableResultType? = account.readFromSecureStore()
        #expect(anyResult?.resultDictionary[kSecAttrPath as String] as? String == "/api/2.0/")
    }

    @Test("A closure that passes the request on to Keychain Services")
    func closures() throws {
        struct Account: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, GenericPasswordSecureStorable {
            let account = "_matthewpalmer"
            let service = "Twitter"
            let data: [String: Any] = ["password": "my_password"]

            var performCreateRequestClosure: PerformRequestClosureType {
                return { (requestReference: CFDictionary, result: inout AnyObject?) in
                    return SecItemAdd(requestReference, &result)
                }
            }
            var performReadRequestClosure: PerformRequestClosureType {
                return { (requestReference: CFDictionary, result: inout AnyObject?) in
                    return SecItemCopyMatching(requestReference, &result)
                }
            }
            var performDeleteRequestClosure: PerformRequestClosureType {
                return { (requestReference, _) in
                    return SecItemDelete(requestReference)
                }
            }
            var performUpdateRequestClosure: PerformUpdateRequestClosureType {
                return { (query, attributesToUpdate) in
                    return SecItemUpdate(query, attributesToUpdate)
                }
            }
        }
        try Account().createInSecureStore()
        try Account().updateInSecureStore()
        #expect(Account().readFromSecureStore()?.data?["password"] as? String == "my_password")
        try Account().deleteFromSecureStore()
        #expect(try RawItems.all().isEmpty)
    }

    @Test("The dictionaries of the requests are available")
    func propertyDictionaries() throws {
        struct Account: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable, GenericPasswordSecureStorable {
            let account = "_matthewpalmer"
            let service = "Twitter"
            let data: [String: Any] = ["password": "my_password"]
        }
        let creation = Account().asCreateableSecureStoragePropertyDictionary
        #expect(creation[kSecAttrAccount as String] as? String == "_matthewpalmer")
        #expect(SecItemAdd(creation as CFDictionary, nil) == errSecSuccess)
        #expect(Account().readFromSecureStore()?.data?["password"] as? String == "my_password")
        let reading = Account().asReadableSecureStoragePropertyDictionary
        #expect(reading[kSecReturnData as String] as? Bool == true)
        #expect(SecItemCopyMatching(reading as CFDictionary, nil) == errSecSuccess)
        #expect(SecItemDelete(Account().asDeleteableSecureStoragePropertyDictionary as CFDictionary) == errSecSuccess)
    }

    @Test("The protocols for attributes can be used alone")
    func parts() {
        func isStorable<Storable: SecureStorable>(_: Storable.Type) -> Bool { true }
        struct Everything: AccountBasedSecureStorable, DescribableSecureStorable, CommentableSecureStorable,
            CreatorDesignatableSecureStorable, LabellableSecureStorable, TypeDesignatableSecureStorable,
            IsInvisibleAssignableSecureStorable,
            IsNegativeAssignableSecureStorable
        {
            let account = "_matthewpalmer"
        }
        #expect(isStorable(Everything.self))
        #expect(Everything().label == nil)
    }

    @Test("A result conforms to the protocol of each attribute")
    func resultParts() throws {
        try GenericPassword(
            comment: "comment", creator: 1, description: "description", isInvisible: true, isNegative: false, label: "label", type: 2
        ).createInSecureStore()
        let result = try #require(GenericPassword().readFromSecureStore())
        #expect((result as AccountBasedSecureStorableResultType).account == "Skroob")
        #expect((result as CommentableSecureStorableResultType).comment == "comment")
        #expect((result as CreatorDesignatableSecureStorableResultType).creator == 1)
        #expect((result as DescribableSecureStorableResultType).description == "description")
        #expect((result as IsInvisibleAssignableSecureStorableResultType).isInvisible == true)
        #expect((result as IsNegativeAssignableSecureStorableResultType).isNegative == false)
        #expect((result as LabellableSecureStorableResultType).label == "label")
        #expect((result as TypeDesignatableSecureStorableResultType).type == 2)
        #expect((result as SecureStorableResultType).resultDictionary[kSecAttrService as String] as? String == "Druidia")
    }

    @Test("Without a bundle, items have the default service")
    func defaultService() throws {
        try Locksmith.saveData(data: [:], forUserAccount: "myUserAccount")
        #expect(try RawItems.only()[kSecAttrService as String] as? String == LocksmithDefaultService)
        #expect(LocksmithDefaultService == Bundle.main.bundleIdentifier ?? "com.locksmith.defaultService")
    }
}
