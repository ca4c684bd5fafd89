// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Values of a custom type", .inMemoryKeychain)
struct CodableSecureStorableTests {
    struct Credentials: Codable, Equatable, Sendable {
        var password: String
        var expires: Date?
        var tokens: [String: [Int]] = [:]
    }

    struct Account: CodableSecureStorable, GenericPasswordSecureStorable, DeleteableSecureStorable, Sendable {
        typealias Payload = Credentials
        let account: String
        let service = "Twitter"
        var label: String?
    }

    private let account = Account(account: "Skroob", label: "Work")
    private let credentials = Credentials(
        password: "12345", expires: Date(timeIntervalSinceReferenceDate: 5), tokens: ["a": [1, 2]])

    @Test("A value is read with its type")
    func roundTrip() throws {
        #expect(try account.readPayloadFromSecureStore() == nil)
        try account.createInSecureStore(payload: credentials)
        #expect(try account.readPayloadFromSecureStore() == credentials)
        #expect(throws: LocksmithError.duplicate) { try account.createInSecureStore(payload: credentials) }
        try account.updateInSecureStore(payload: Credentials(password: "54321"))
        #expect(try account.readPayloadFromSecureStore()?.password == "54321")
        try account.deleteFromSecureStore()
        try account.updateInSecureStore(payload: credentials)
        #expect(try account.readPayloadFromSecureStore() == credentials)
    }

    @Test("A result has the attributes and the value")
    func result() throws {
        try account.createInSecureStore(payload: credentials)
        let result = try #require(account.readFromSecureStore())
        #expect(result.label == "Work")
        #expect(try result.payload(as: Credentials.self) == credentials)
    }

    @Test("A value of one letter, or of an internet password, is read too")
    func others() throws {
        struct Letter: CodableSecureStorable, InternetPasswordSecureStorable {
            typealias Payload = String
            let account = "Skroob"
            let server = "druidia.example"
            let port = 443
            let internetProtocol = LocksmithInternetProtocol.https
            let authenticationType = LocksmithInternetAuthenticationType.httpBasic
        }
        try Letter().createInSecureStore(payload: "a")
        #expect(try Letter().readPayloadFromSecureStore() == "a")
    }

    @Test("A value of another type is an error and not reported as missing")
    func anotherType() throws {
        try Locksmith.saveData(["password": "12345"], forUserAccount: "Skroob", inService: "Twitter")
        let account = Account(account: "Skroob")
        #expect(throws: LocksmithError.decode) { try account.readPayloadFromSecureStore() }
        try Locksmith.updateData(["payload": Data("[1]".utf8)], forUserAccount: "Skroob", inService: "Twitter")
        #expect(throws: LocksmithError.decode) { try account.readPayloadFromSecureStore() }
        try Locksmith.updateData(["payload": "text"], forUserAccount: "Skroob", inService: "Twitter")
        #expect(throws: LocksmithError.decode) { try account.readPayloadFromSecureStore() }
    }

    @Test("A value that cannot be encoded is an error, and nothing is stored")
    func notEncodable() throws {
        struct Ratio: CodableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = Double
            let account = "Skroob"
            let service = "Ratios"
        }
        let error = #expect(throws: LocksmithError.unarchivable) { try Ratio().updateInSecureStore(payload: .infinity) }
        #expect(error?.key == "payload")
        #expect(try RawItems.all().isEmpty)
    }

    @Test(
        "Errors contain the path and never the value",
        arguments: [(#"{"codes":[1,98765]}"#, "payload"), (#"{"codes":[1,"98765"]}"#, "payload.codes[1]")])
    func places(json: String, key: String) throws {
        struct Codes: CodableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = [String: [Int8]]
            let account = "Skroob"
            let service = "Twitter"
        }
        try Locksmith.saveData(["payload": Data(json.utf8)], forUserAccount: "Skroob", inService: "Twitter")
        let error = #expect(throws: LocksmithError.decode) { try Codes().readPayloadFromSecureStore() }
        #expect(error?.key == key)
        #expect(error.map { String(reflecting: $0).contains("98765") } == false)
        #expect(error?.status == nil)
    }

    @Test("An error of a type's own decoding is not passed on")
    func ownError() throws {
        struct Told: Error { let secret: String }
        struct Talkative: Codable {
            init() {}
            init(from decoder: any Decoder) throws { throw Told(secret: try decoder.singleValueContainer().decode(String.self)) }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode("12345")
            }
        }
        struct Account: CodableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = Talkative
            let account = "Skroob"
            let service = "Talk"
        }
        try Account().createInSecureStore(payload: Talkative())
        #expect(throws: LocksmithError.decode) { try Account().readPayloadFromSecureStore() }
    }

    @Test("Values are stored and read through a type's own closures")
    func closures() throws {
        final class Performed { var calls: [String] = [] }
        struct Watched: CodableSecureStorable, CreateableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = Int
            let account = "Skroob"
            let service = "Watched"
            let data: [String: Any] = [:]
            let performed = Performed()
            var performCreateRequestClosure: PerformRequestClosureType {
                { _, _ in
                    performed.calls.append("create")
                    return errSecSuccess
                }
            }
            var performUpdateRequestClosure: PerformUpdateRequestClosureType {
                { _, _ in
                    performed.calls.append("update")
                    return errSecItemNotFound
                }
            }
        }
        let watched = Watched()
        try watched.updateInSecureStore(payload: 1)
        #expect(watched.performed.calls == ["update", "create"])
        #expect(try RawItems.all().isEmpty)
    }
}

@Suite("The accounts of a service", .inMemoryKeychain(accessGroups: ["first", "second"]))
struct UserAccountsTests {
    @Test("All accounts of the service are listed once, and none of another service")
    func listing() throws {
        #expect(try Locksmith.userAccounts() == [])
        for account in ["Skroob", "Helmet"] { try Locksmith.saveData([:], forUserAccount: account) }
        try GenericPassword(account: "Yogurt", accessGroup: "first").createInSecureStore()
        try GenericPassword(account: "Yogurt", accessGroup: "second").createInSecureStore()
        #expect(try Locksmith.userAccounts() == ["Helmet", "Skroob"])
        #expect(try Locksmith.userAccounts(inService: "Druidia") == ["Yogurt"])
        #expect(try Locksmith.userAccounts(inService: "Spaceball") == [])
    }

    @Test("Canonically equivalent accounts are listed separately")
    func canonicallyEqual() throws {
        try Locksmith.saveData(["number": 1], forUserAccount: "\u{e9}")
        try Locksmith.saveData(["number": 2], forUserAccount: "e\u{301}")
        let accounts = try Locksmith.userAccounts()
        #expect(Set(accounts.map { Array($0.utf8) }).count == 2)
        #expect(Set(accounts.map { Locksmith.loadDataForUserAccount($0)?["number"] as? Int }) == [1, 2])
    }
}
