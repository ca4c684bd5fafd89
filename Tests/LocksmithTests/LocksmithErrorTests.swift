// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Errors")
struct LocksmithErrorTests {
    @Test("Statuses have their errors, success has one, and others have none")
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

    @Test("A message leads back to its error, any other to none")
    func messages() {
        #expect(LocksmithError.allCases.allSatisfy { LocksmithError(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithError(rawValue: "") == nil)
        #expect(LocksmithError.notFound.rawValue == "The item cannot be found.")
        #expect(LocksmithError.notFound.localizedDescription == "The item cannot be found.")
    }

    @Test("Any status of a closure throws, and one without an error of its own is at hand", arguments: [-34_018, -128, 1, .min])
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

    @Test("Errors are caught and told apart as cases of an enumeration are")
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
        if case LocksmithError.decode = error {} else { Issue.record("It is not recognised") }
        if case LocksmithError.notFound = error { Issue.record("It is taken for another") }
    }

    @Test("A type that is no password says so", .inMemoryKeychain)
    func noPassword() {
        struct Thing: CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let data: [String: Any] = [:]
        }
        #expect(throws: LocksmithError.typeNotFound) { try Thing().createInSecureStore() }
        #expect(throws: LocksmithError.typeNotFound) { try Thing().tryReadFromSecureStore() }
        #expect(Thing().asCreateableSecureStoragePropertyDictionary.isEmpty)
    }

    @Test("Certificates and keys say that they are not supported", .inMemoryKeychain)
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
