// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Errors")
struct LocksmithErrorTests {
    @Test("A status creates its error, and an unknown status returns nil")
    func statuses() {
        let expected: [(OSStatus, LocksmithError)] = [
            (errSecAllocate, .allocate), (errSecAuthFailed, .authFailed), (errSecDecode, .decode), (errSecDuplicateItem, .duplicate),
            (errSecInteractionNotAllowed, .interactionNotAllowed), (errSecSuccess, .noError), (errSecNotAvailable, .notAvailable),
            (errSecItemNotFound, .notFound), (errSecParam, .param), (errSecUnimplemented, .unimplemented),
        ]
        for (status, error) in expected {
            #expect(LocksmithError(fromStatusCode: Int(status)) == error)
            #expect(error.status == status)
        }
        #expect(LocksmithError(fromStatusCode: -34_018) == nil)
        #expect(LocksmithError(fromStatusCode: .max) == nil)
    }

    @Test("A message creates its error, and any other text returns nil")
    func messages() {
        #expect(LocksmithError.allCases.allSatisfy { LocksmithError(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithError(rawValue: "") == nil)
        #expect(LocksmithError.notFound.rawValue == "The item cannot be found.")
        #expect(LocksmithError.notFound.localizedDescription == "The item cannot be found.")
    }

    @Test("Any status of a closure throws, and the error contains the status", arguments: [-34_018, -128, 1, .min])
    func unknown(status: Int32) throws {
        struct Failing: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let account = ""
            let service = ""
            let data: [String: Any] = [:]
            let status: Int32
            var performCreateRequestClosure: PerformRequestClosureType { { _, _ in status } }
            var performReadRequestClosure: PerformRequestClosureType { { _, _ in status } }
            var performDeleteRequestClosure: PerformRequestClosureType { { _, _ in status } }
        }
        let failing = Failing(status: status)
        for perform in [failing.createInSecureStore, failing.deleteFromSecureStore, { _ = try failing.tryReadFromSecureStore() }] {
            do {
                try perform()
                Issue.record("The status was taken for success")
            } catch LocksmithError.undefined {
                // Caught by its name.
            }
            let error = #expect(throws: LocksmithError.undefined) { try perform() }
            #expect(error?.status == status)
            #expect(error?.description.contains("\(status)") == true)
        }
    }

    @Test("Errors can be caught and matched like cases of an enumeration")
    func patterns() {
        func name(_ error: LocksmithError) -> String {
            switch error {
            case .notFound: "not found"
            case .Duplicate: "duplicate"
            default: "other"
            }
        }
        #expect([.notFound, .duplicate, .decode].map(name) == ["not found", "duplicate", "other"])
        let error: any Error = LocksmithError.decode
        if case LocksmithError.decode = error {} else { Issue.record("The error was not matched") }
        if case LocksmithError.notFound = error { Issue.record("It is taken for another") }
    }

    @Test("A type that is not a password throws an error", .inMemoryKeychain)
    func noPassword() {
        struct Thing: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let data: [String: Any] = [:]
        }
        #expect(throws: LocksmithError.typeNotFound) { try Thing().createInSecureStore() }
        #expect(throws: LocksmithError.typeNotFound) { try Thing().tryReadFromSecureStore() }
        #expect(Thing().asCreateableSecureStoragePropertyDictionary.isEmpty)
    }

    @Test("Certificates and keys throw unimplemented", .inMemoryKeychain)
    func notSupported() {
        struct Certificate: CertificateSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let data: [String: Any] = [:]
        }
        struct Key: KeySecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let data: [String: Any] = [:]
        }
        func check<Item: CreateableSecureStorable & ReadableSecureStorable & DeleteableSecureStorable>(_ item: Item) {
            #expect(throws: LocksmithError.unimplemented) { try item.createInSecureStore() }
            #expect(throws: LocksmithError.unimplemented) { try item.updateInSecureStore() }
            #expect(throws: LocksmithError.unimplemented) { try item.tryReadFromSecureStore() }
            #expect(throws: LocksmithError.unimplemented) { try item.deleteFromSecureStore() }
            #expect(item.readFromSecureStore() == nil)
        }
        check(Certificate())
        check(Key())
    }
}

#if !canImport(Darwin)
@Suite("Items that cannot be read", .inMemoryKeychain)
struct UnreadableItemTests {
    private let generic = GenericPassword()
    private let internet = InternetPassword()
    private let keychain = InMemoryKeychain.current

    /// The results of both read functions for both kinds of passwords and for untyped data: nil, and an error or nil.
    private func expectReading(_ error: LocksmithError?) throws {
        #expect(generic.readFromSecureStore() == nil)
        #expect(internet.readFromSecureStore() == nil)
        #expect(Locksmith.loadDataForUserAccount("Skroob", inService: "Druidia") == nil)
        let readings: [() throws -> Any?] = [
            { try generic.tryReadFromSecureStore() }, { try internet.tryReadFromSecureStore() },
            { try Locksmith.tryLoadDataForUserAccount("Skroob", inService: "Druidia") },
        ]
        for read in readings {
            if let error {
                #expect(throws: error) { try read() }
            } else {
                #expect(try read() == nil)
            }
        }
    }

    private func store() throws {
        try generic.createInSecureStore()
        try internet.createInSecureStore()
    }

    @Test("A missing item is nil from both read functions")
    func missing() throws {
        try expectReading(nil)
        #expect(throws: LocksmithError.notFound) { try generic.deleteFromSecureStore() }
        #expect(throws: LocksmithError.notFound) { try Locksmith.deleteDataForUserAccount("Skroob") }
    }

    @Test("A locked item is not reported as missing, and can be read after unlocking")
    func locked() throws {
        try store()
        try keychain?.lock()
        try expectReading(.interactionNotAllowed)
        #expect(throws: LocksmithError.interactionNotAllowed) { try generic.updateInSecureStore() }
        #expect(throws: LocksmithError.interactionNotAllowed) { try Locksmith.userAccounts(inService: "Druidia") }
        try keychain?.unlock()
        #expect(try generic.tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
        #expect(try internet.tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
    }

    @Test("A damaged item is not reported as missing, and can be replaced")
    func damaged() throws {
        try store()
        try keychain?.damageItems()
        try expectReading(.decode)
        let error = #expect(throws: LocksmithError.decode) { try generic.tryReadFromSecureStore() }
        #expect(error?.status == errSecDecode, "the keychain says so, not this library")
        try GenericPassword(secret: "54321").updateInSecureStore()
        #expect(try generic.tryReadFromSecureStore()?.data?["secret"] as? String == "54321")
    }

    @Test(
        "An item of another program without an archive is not reported as missing",
        arguments: [Data("12345".utf8), Data(), Data("bplist00".utf8), Data(repeating: 0xff, count: 64)])
    func foreign(value: Data) throws {
        let attributes = [
            generic.asDeleteableSecureStoragePropertyDictionary, internet.asDeleteableSecureStoragePropertyDictionary,
        ]
        for item in attributes {
            var item = item
            item[kSecValueData as String] = value
            try #require(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        }
        try expectReading(.decode)
        let error = #expect(throws: LocksmithError.decode) { try generic.tryReadFromSecureStore() }
        #expect(error?.status == nil, "the keychain found nothing wrong")
        #expect(throws: LocksmithError.duplicate) { try generic.createInSecureStore() }
        try generic.updateInSecureStore()
        #expect(try generic.tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
    }

    @Test("An item without a value has attributes and no data")
    func withoutValue() throws {
        let item = GenericPassword(label: "Work").asDeleteableSecureStoragePropertyDictionary
        try #require(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        let result = try generic.tryReadFromSecureStore()
        #expect(result?.label == "Work")
        #expect(result?.data == nil)
        // Untyped data is not reported as missing: the item exists, and adding it fails.
        #expect(Locksmith.loadDataForUserAccount("Skroob", inService: "Druidia") == nil)
        #expect(throws: LocksmithError.decode) { try Locksmith.tryLoadDataForUserAccount("Skroob", inService: "Druidia") }
    }

    @Test("An item that another program adds and removes concurrently is stored")
    func race() throws {
        final class Performed { var calls: [String] = [] }
        struct Contested: GenericPasswordSecureStorable, CreateableSecureStorable {
            let account = "Skroob"
            let service = "Druidia"
            let data: [String: Any] = [:]
            let performed = Performed()
            var performUpdateRequestClosure: PerformUpdateRequestClosureType {
                { _, _ in
                    performed.calls.append("update")
                    return performed.calls.count < 4 ? errSecItemNotFound : errSecSuccess
                }
            }
            var performCreateRequestClosure: PerformRequestClosureType {
                { _, _ in
                    performed.calls.append("add")
                    return errSecDuplicateItem
                }
            }
        }
        let contested = Contested()
        try contested.updateInSecureStore()
        #expect(contested.performed.calls == ["update", "add", "update", "add", "update"])
    }

    @Test("A printed result does not reveal its contents")
    func printing() throws {
        try store()
        for result in [try #require(generic.readFromSecureStore()) as Any, try #require(internet.readFromSecureStore()) as Any] {
            var dumped = ""
            dump(result, to: &dumped)
            for text in ["\(result)", String(reflecting: result), dumped] {
                #expect(text.contains("password") && !text.contains("12345") && !text.contains("Skroob"), "\(text)")
            }
        }
    }

    @Test("A keychain that cannot be used is not reported as a missing item, and a failed write throws")
    func unavailable() throws {
        try store()
        keychain?.fail(.all, with: .unavailable)
        try expectReading(.notAvailable)
        #expect(throws: LocksmithError.notAvailable) { try generic.updateInSecureStore() }
        #expect(throws: LocksmithError.notAvailable) { try generic.deleteFromSecureStore() }
        keychain?.stopFailing()
        keychain?.fail(.writes, with: .inputOutput(isWritten: false), times: 1)
        let error = #expect(throws: LocksmithError.undefined) { try GenericPassword(account: "Helmet").createInSecureStore() }
        #expect(error?.status == errSecIO)
    }

    @Test("A closure's result that is not an item is an error")
    func closure() {
        struct Strange: GenericPasswordSecureStorable, ReadableSecureStorable {
            let account = ""
            let service = ""
            let answer: AnyObject?
            var performReadRequestClosure: PerformRequestClosureType {
                { _, result in
                    result = answer
                    return errSecSuccess
                }
            }
        }
        #expect(throws: LocksmithError.decode) { try Strange(answer: nil).tryReadFromSecureStore() }
        #expect(throws: LocksmithError.decode) { try Strange(answer: NSNumber(value: 1)).tryReadFromSecureStore() }
        #expect(throws: LocksmithError.decode) { try Strange(answer: ["v_Data": "text"] as AnyObject).tryReadFromSecureStore() }
        #expect(throws: LocksmithError.decode) { try Strange(answer: ["acct": 1] as AnyObject).tryReadFromSecureStore() }
    }
}
#endif
