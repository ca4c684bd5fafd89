// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainServices
import KeychainTesting
import Synchronization
import ServedKeychain
import Testing
import Valet

private struct Credentials: Codable, Equatable, Sendable {
    var user: String
    var token: String
    var scopes: [String] = []
}

extension ValetKey<Credentials> {
    fileprivate static let github = ValetKey("github")
}

extension ValetKey<String> {
    fileprivate static let text = ValetKey("text")
}

@Suite("Typed keys", .keychain(accessGroups: testAccessGroups))
struct TypedValueTests {
    private let credentials = Credentials(user: "Skroob", token: "12345", scopes: ["air", "shield"])
    private let vault = Valet.valet(with: "typed", accessibility: .whenUnlocked)

    private func reason<Result>(_ body: () throws(ValetFailure) -> Result) -> ValetFailure.Reason? {
        do throws(ValetFailure) { _ = try body() } catch { return error.reason }
        return nil
    }

    @Test("A value is stored as JSON with sorted keys, replaced, and removed")
    func roundTrip() throws {
        #expect(try vault.valueIfPresent(for: .github) == nil)
        #expect(try !vault.containsValue(for: .github))
        try vault.set(credentials, for: .github)
        #expect(try vault.value(for: .github) == credentials)
        #expect(try vault.string(forKey: "github") == #"{"scopes":["air","shield"],"token":"12345","user":"Skroob"}"#)
        try vault.set(Credentials(user: "Helmet", token: "2"), for: .github)
        #expect(try vault.valueIfPresent(for: .github)?.user == "Helmet")
        #expect(try vault.containsValue(for: .github))
        try vault.removeValue(for: .github)
        try vault.removeValue(for: .github)
        #expect(reason { () throws(ValetFailure) in try vault.value(for: .github) } == .notFound)
    }

    @Test("Text and data are stored as they are, so that untyped calls see the same")
    func plainValues() throws {
        try vault.set("swordfish", for: .text)
        #expect(try vault.string(forKey: "text") == "swordfish")
        try vault.setString("\u{FEFF}é\0", forKey: "text")
        #expect(try vault.value(for: .text) == "\u{FEFF}é\0")
        let data = ValetKey<Data>("data")
        try vault.set(Data([0, 255]), for: data)
        #expect(try vault.object(forKey: "data") == Data([0, 255]))
        #expect(try vault.value(for: data) == Data([0, 255]))
        #expect(reason { () throws(ValetFailure) in try vault.value(for: ValetKey<String>("data")) } == .notText)
    }

    @Test("All kinds of valets have typed calls, with their prompts")
    func kinds() throws {
        let keychain = try keychainWithPasscode()
        let cloud = Valet.iCloudValet(with: "typed", accessibility: .whenUnlocked)
        try cloud.set(credentials, for: .github)
        #expect(try cloud.value(for: .github, withPrompt: "not shown") == credentials)
        let enclave = try enclaveValet()
        try enclave.set(credentials, for: .github)
        #expect(try enclave.containsValue(for: .github))
        keychain.person.answers(.correctPasscode, .cancel, .correctPasscode)
        #expect(try enclave.value(for: .github, withPrompt: "open the air shield") == credentials)
        #expect(reason { () throws(ValetFailure) in try enclave.value(for: .github) } == .canceled)
        let single = try singlePromptValet("typed single prompt")
        try single.set(credentials, for: .github)
        #expect(try single.value(for: .github, withPrompt: "once") == credentials)
        #expect(try single.valueIfPresent(for: .github) == credentials)
        #expect(keychain.person.questions.compactMap(\.reason).filter { !$0.isEmpty }.prefix(1) == ["open the air shield"])
    }

    private struct PropertyListCoder: ValetCoder {
        func encode<Value: Encodable>(_ value: Value) throws -> Data { try PropertyListEncoder().encode(value) }

        func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
            try PropertyListDecoder().decode(type, from: data)
        }
    }

    @Test("Another coder encodes the values of a valet, except under keys that have a coder of their own")
    func coderOfValet() throws {
        let lists = vault.coding(with: PropertyListCoder())
        try lists.set(credentials, for: .github)
        #expect(try lists.value(for: .github) == credentials)
        #expect(reason { () throws(ValetFailure) in try vault.value(for: .github) } == .notDecodable(codingPath: []))
        #expect(try PropertyListCoder().decode(Credentials.self, from: vault.object(forKey: "github")) == credentials)
        try lists.update(.github) { $0.user = "Helmet" }
        #expect(try lists.value(for: .github).user == "Helmet")
        let json = ValetKey<Credentials>("json", coder: JSONValetCoder())
        try lists.set(credentials, for: json)
        #expect(try vault.value(for: ValetKey<Credentials>("json")) == credentials)
        #expect(try lists.containsValue(for: json) && lists.canAccessKeychain())
        try lists.removeValue(for: json)
        #expect(try lists.valueIfPresent(for: json) == nil)
        #expect(reason { () throws(ValetFailure) in try lists.set(credentials, for: .github, onlyIfAbsent: true) } == .alreadyExists)
        try lists.removeAllObjects()
        #expect(try vault.allKeys().isEmpty)
    }

    @Test("A change by several threads loses nothing, and returns the new value")
    func update() async throws {
        let keychain = try #require(InMemoryKeychain.current)
        let counter = ValetKey<Int>("counter")
        try vault.set(0, for: counter)
        let seen = Mutex<Set<Int>>([])
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            keychain.perform {
                for _ in 0..<25 {
                    guard let new = try? vault.update(counter, { $0 += 1 }) else { continue }
                    seen.withLock { _ = $0.insert(new) }
                }
            }
        }
        #expect(try vault.value(for: counter) == 200)
        #expect(seen.withLock { $0 } == Set(1...200))
    }

    @Test("A change that throws, or of a value that is absent or of another type, changes nothing")
    func failedUpdate() throws {
        struct Stopped: Error {}
        #expect(reason(updating: .github) { $0.token = "" } == .notFound)
        #expect(try vault.allKeys().isEmpty)
        try vault.set(credentials, for: .github)
        #expect(throws: Stopped.self) {
            try vault.update(.github) { credentials in
                credentials.token = "changed"
                throw Stopped()
            }
        }
        #expect(try vault.value(for: .github) == credentials)
        try vault.setString("not JSON", forKey: "github")
        #expect(reason(updating: .github) { $0.token = "" } == .notDecodable(codingPath: []))
        #expect(try vault.string(forKey: "github") == "not JSON")
        try vault.set("text", for: .text)
        #expect(reason(updating: .text) { $0 = "" } == .emptyValue)
        #expect(try vault.value(for: .text) == "text")
        #expect(reason(updating: ValetKey<String>("")) { $0 = "a" } == .emptyKey)
        // The item of another accessibility can be neither read nor replaced.
        try explicitValet("Druidia", .afterFirstUnlock).set("theirs", for: .text)
        let other = Valet.valet(withExplicitlySet: "Druidia", accessibility: .whenUnlocked)
        #expect(throws: KeychainError.couldNotAccessKeychain) {
            try other.modifyObject(forKey: "text", withPrompt: "") { $0 = Data("a".utf8) }
        }
        #expect(try explicitValet("Druidia", .afterFirstUnlock).value(for: .text) == "theirs")
    }

    private func reason<Value>(updating key: ValetKey<Value>, _ change: (inout Value) -> Void) -> ValetFailure.Reason? {
        do { try vault.update(key, change) } catch { return (error as? ValetFailure)?.reason }
        return nil
    }

    @Test("Bytes are added, changed, left, and removed by one call")
    func modify() throws {
        try vault.modifyObject(forKey: "key", withPrompt: "") { $0 = Data("a".utf8) }
        let date = try RawItems.only()[kSecAttrModificationDate as String] as? Date
        try vault.modifyObject(forKey: "key", withPrompt: "") { #expect($0 == Data("a".utf8)) }
        #expect(try RawItems.only()[kSecAttrModificationDate as String] as? Date == date)
        try vault.modifyObject(forKey: "key", withPrompt: "") { $0?.append(0) }
        #expect(try vault.object(forKey: "key") == Data("a\0".utf8))
        // As if another program stored a value between reading and writing.
        var runs = 0
        try vault.modifyObject(forKey: "key", withPrompt: "") { object in
            runs += 1
            if runs == 1 { #expect(RawItems.setValue(Data("b".utf8), account: "key", service: service(of: vault)) == errSecSuccess) }
            object?.append(1)
        }
        #expect(runs == 2)
        #expect(try vault.object(forKey: "key") == Data("b\u{1}".utf8))
        try vault.modifyObject(forKey: "key", withPrompt: "") { $0 = nil }
        #expect(try RawItems.all().isEmpty)
    }

    private func service(of valet: Valet) -> String { valet.itemQuery[kSecAttrService as String] as? String ?? "" }

    @Test("A change in a valet with access control prompts once")
    func updateWithPrompt() throws {
        let keychain = try keychainWithPasscode()
        let enclave = try enclaveValet()
        try enclave.set(credentials, for: .github)
        keychain.person.answers(.cancel, .correctPasscode)
        #expect(throws: ValetFailure.self) { try enclave.update(.github, withPrompt: "renew") { $0.token = "2" } }
        #expect(try enclave.update(.github, withPrompt: "renew") { $0.token = "2" }.token == "2")
        #expect(keychain.person.questions.compactMap(\.reason) == ["renew", "renew"])
        keychain.person.answers(.correctPasscode)
        #expect(try enclave.value(for: .github).token == "2")
        let single = try singlePromptValet("updating")
        try single.set(1, for: ValetKey<Int>("counter"))
        keychain.person.answers(.correctPasscode)
        for _ in 0..<3 { try single.update(ValetKey<Int>("counter")) { $0 += 1 } }
        #expect(try single.value(for: ValetKey<Int>("counter")) == 4)
        #expect(keychain.person.questions.count == 4)
    }

    @Test("Another coder encodes the value of its key")
    func coder() throws {
        let key = ValetKey<Credentials>("list", coder: PropertyListCoder())
        try vault.set(credentials, for: key)
        #expect(try vault.value(for: key) == credentials)
        #expect(reason { () throws(ValetFailure) in try vault.value(for: ValetKey<Credentials>("list")) } == .notDecodable(codingPath: []))
    }

    @Test(
        "A value of another type is not decodable, and the reason has the path to what does not fit",
        arguments: [
            ("not JSON", []), (#"{"user":"Skroob","scopes":[]}"#, ["token"]), (#"{"user":1,"token":"","scopes":[]}"#, ["user"]),
            (#"{"user":"","token":"","scopes":["air",2]}"#, ["scopes", "Index 1"]), (#"["Skroob"]"#, []),
        ] as [(String, [String])])
    func notDecodable(_ stored: String, _ path: [String]) throws {
        try vault.setString(stored, forKey: "github")
        let failure = #expect(throws: ValetFailure.self) { try vault.value(for: .github) }
        #expect(failure?.reason == .notDecodable(codingPath: path))
        #expect(failure?.status == nil)
        #expect(failure.map { !"\($0) \($0.localizedDescription)".contains("Skroob") } == true)
        #expect(try vault.string(forKey: "github") == stored)
    }

    @Test("A value that a newer version of the type has stored is read without what this version does not know")
    func newerVersion() throws {
        try vault.setString(#"{"expires":7,"scopes":[],"token":"12345","user":"Skroob"}"#, forKey: "github")
        #expect(try vault.value(for: .github) == Credentials(user: "Skroob", token: "12345"))
    }

    @Test("A value that cannot be encoded is not stored")
    func notEncodable() throws {
        let key = ValetKey<[String: Double]>("numbers")
        #expect(
            reason { () throws(ValetFailure) in try vault.set(["one": 1, "all": .infinity], for: key) }
                == .notEncodable(codingPath: ["all"]))
        #expect(try !vault.containsValue(for: key))
    }

    @Test(
        "A key can be any text but the empty one",
        arguments: ["é", "e\u{301}", "🥋", "\0", "a b\n", "ключ", String(repeating: "k", count: 64 << 10)])
    func keys(_ name: String) throws {
        let key = ValetKey<Int>(name)
        try vault.set(7, for: key)
        #expect(try vault.value(for: key) == 7)
        #expect(try vault.valueIfPresent(for: ValetKey<Int>(name + "2")) == nil)
    }

    @Test("An empty key and an empty value are errors")
    func empty() throws {
        let key = ValetKey<String>("")
        #expect(reason { () throws(ValetFailure) in try vault.set("a", for: key) } == .emptyKey)
        #expect(reason { () throws(ValetFailure) in try vault.set("a", for: key, onlyIfAbsent: true) } == .emptyKey)
        #expect(reason { () throws(ValetFailure) in try vault.value(for: key) } == .emptyKey)
        #expect(reason { () throws(ValetFailure) in try vault.containsValue(for: key) } == .emptyKey)
        #expect(reason { () throws(ValetFailure) in try vault.removeValue(for: key) } == .emptyKey)
        #expect(reason { () throws(ValetFailure) in try vault.set("", for: .text) } == .emptyValue)
        #expect(reason { () throws(ValetFailure) in try vault.set("", for: .text, onlyIfAbsent: true) } == .emptyValue)
    }

    @Test("A value of ten mebibytes is stored and read")
    func large() throws {
        let key = ValetKey<[String]>("large")
        let value = [String(repeating: "x", count: 10 << 20)]
        try vault.set(value, for: key)
        #expect(try vault.value(for: key) == value)
    }

    @Test("Optional text and data are values of their own types")
    func optionals() throws {
        let text = ValetKey<String?>("text")
        let data = ValetKey<Data?>("data")
        for value in ["abc", "null", "\"x\"", nil] as [String?] {
            try vault.set(value, for: text)
            #expect(try vault.value(for: text) == value)
        }
        for value in [Data([1, 2, 3]), Data("null".utf8), nil] as [Data?] {
            try vault.set(value, for: data)
            #expect(try vault.value(for: data) == value)
        }
    }

    #if !canImport(Darwin)
    @Test(
        "A value that cannot be read is not absent, so nothing is stored in its place unless that is meant",
        arguments: [Accessibility.whenUnlocked, .afterFirstUnlock, .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly])
    func onlyIfAbsentBesideDamage(_ accessibility: Accessibility) throws {
        let keychain = try #require(InMemoryKeychain.current)
        let vault = Valet.valet(with: "damage", accessibility: accessibility)
        try vault.set("precious", for: .text)
        try keychain.damageItems(account: ValetKey<String>.text.name)
        #expect(reason { () throws(ValetFailure) in try vault.set("new", for: .text, onlyIfAbsent: true) } == .damaged)
        #expect(reason { () throws(ValetFailure) in _ = try vault.value(for: .text) } == .damaged)
        for number in 0..<2 {
            try vault.set("new \(number)", for: .text)
            #expect(try vault.value(for: .text) == "new \(number)")
            try keychain.damageItems(account: ValetKey<String>.text.name)
        }
    }
    #endif

    @Test("Of several threads that store only if there is no value, one succeeds, and its value remains")
    func onlyIfAbsent() throws {
        let keychain = try #require(InMemoryKeychain.current)
        let key = ValetKey<Int>("first")
        let stored = Mutex<[Int]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { number in
            keychain.perform {
                guard reason({ () throws(ValetFailure) in try vault.set(number, for: key, onlyIfAbsent: true) }) == nil else { return }
                stored.withLock { $0.append(number) }
            }
        }
        let winners = stored.withLock { $0 }
        #expect(winners.count == 1)
        #expect(try vault.value(for: key) == winners.first)
        #expect(reason { () throws(ValetFailure) in try vault.set(9, for: key, onlyIfAbsent: true) } == .alreadyExists)
        // A valet of another accessibility has the item, so this one can neither read nor add it.
        try explicitValet("Druidia", .afterFirstUnlock).set(1, for: key)
        #expect(
            reason { () throws(ValetFailure) in
                try Valet.valet(withExplicitlySet: "Druidia", accessibility: .whenUnlocked).set(1, for: key, onlyIfAbsent: true)
            } == .alreadyExists)
    }
}

@Suite("A failure says why", .keychain(accessGroups: testAccessGroups))
struct ValetFailureTests {
    private let vault = Valet.valet(with: "reasons", accessibility: .whenUnlocked)

    private func failure(_ body: () throws -> Void) -> ValetFailure? {
        #expect(throws: ValetFailure.self) { try body() }
    }

    @Test("An explicitly named valet says that another accessibility has its key, and stores nothing")
    func otherAccessibility() throws {
        let old = Valet.valet(withExplicitlySet: "com.example.app", accessibility: .whenUnlocked)
        let new = Valet.valet(withExplicitlySet: "com.example.app", accessibility: .afterFirstUnlock)
        try old.set("swordfish", for: .text)
        let explained = {
            try ValetFailure.explaining { () throws(KeychainError) in try new.setString("a", forKey: ValetKey<String>.text.name) }
        }
        for call in [{ try new.set("a", for: .text) }, explained] {
            let failure = failure(call)
            #expect(failure?.reason == .alreadyExists && failure?.status == errSecDuplicateItem)
            let reason = try #require(failure?.failureReason)
            #expect(reason.contains("accessibility") && failure?.errorDescription?.contains(reason) == true)
            #expect(failure?.recoverySuggestion?.contains("valet apps") == true)
        }
        #expect(throws: KeychainError.couldNotAccessKeychain) { try new.setString("a", forKey: ValetKey<String>.text.name) }
        #expect(try new.valueIfPresent(for: .text) == nil)
        // As the suggestion says.
        try new.migrateObjects(from: old, removeOnCompletion: true)
        try new.set("marlin", for: .text)
        #expect(try new.value(for: .text) == "marlin")
        #expect(try old.valueIfPresent(for: .text) == nil)
    }

    @Test("A locked keychain: reason, status, and the next step; the value is neither absent nor changed")
    func locked() throws {
        let keychain = try keychainWithPasscode()
        try vault.set("swordfish", for: .text)
        try keychain.lock()
        for call in [{ _ = try vault.value(for: .text) }, { _ = try vault.valueIfPresent(for: .text) }, { try vault.set("a", for: .text) }]
        {
            let failure = failure(call)
            #expect(failure?.reason == .locked && failure?.status == errSecInteractionNotAllowed)
            #expect(failure?.errorDescription == "The keychain is locked. Run `valet unlock`.")
            #expect(failure?.localizedDescription == failure?.errorDescription)
            #expect(failure?.failureReason?.isEmpty == false)
        }
        #expect(try vault.valueIfPresent(for: ValetKey<String>("another")) == nil)
        try keychain.unlock()
        #expect(try vault.value(for: .text) == "swordfish")
    }

    @Test("Other states of the keychain")
    func states() throws {
        let keychain = try #require(InMemoryKeychain.current)
        let passcodeOnly = Valet.valet(with: "reasons", accessibility: .whenPasscodeSetThisDeviceOnly)
        #expect(failure { try passcodeOnly.set("a", for: .text) }?.reason == .passcodeNotSet)
        try vault.set("swordfish", for: .text)
        try keychain.damageItems()
        let damaged = failure { _ = try vault.valueIfPresent(for: .text) }
        #expect(damaged?.reason == .damaged && damaged?.status == errSecDecode)
        let foreign = Valet.sharedGroupValet(with: try foreignGroup(), accessibility: .whenUnlocked)
        let missing = failure { _ = try foreign.valueIfPresent(for: .text) }
        #expect(missing?.reason == .missingEntitlement && missing?.status == errSecMissingEntitlement)
        keychain.fail(.all, with: .unavailable, times: 1)
        #expect(failure { _ = try vault.value(for: .text) }?.reason == .unavailable)
        keychain.fail(.writes, with: .diskFull)
        #expect(failure { try vault.set("b", for: .text) }?.reason == .diskFull)
        keychain.stopFailing()
        keychain.fail(.writes, with: .inputOutput(isWritten: true))
        #expect(failure { try vault.set("b", for: .text) }?.reason == .outcomeUnknown)
    }

    @Test("Prompts")
    func prompts() throws {
        let keychain = try keychainWithPasscode()
        let enclave = try enclaveValet("reasons")
        try enclave.set("swordfish", for: .text)
        let absent = failure { _ = try enclave.value(for: .text) }
        #expect(absent?.reason == .cannotPrompt)
        // The keychain is unlocked, so an unlock would not help.
        #expect(absent?.recoverySuggestion?.contains("pinentry") == true)
        keychain.person.answers(.cancel)
        #expect(failure { _ = try enclave.value(for: .text) }?.reason == .canceled)
        keychain.person.answers(.text("wrong"), times: 3)
        let wrong = failure { _ = try enclave.value(for: .text) }
        #expect(wrong?.reason == .notAuthenticated && wrong?.status == errSecAuthFailed)
        keychain.person.answers(.tooLate)
        #expect(failure { _ = try enclave.value(for: .text) }?.reason == .notAuthenticated)
    }

    @Test("An error of an untyped call has a reason too", arguments: KeychainError.allCases)
    func fromKeychainError(_ error: KeychainError) throws {
        let failure = ValetFailure(error)
        let expected: [KeychainError: ValetFailure.Reason] = [
            .couldNotAccessKeychain: .unavailable, .userCancelled: .canceled, .itemNotFound: .notFound,
            .missingEntitlement: .missingEntitlement,
            .emptyKey: .emptyKey, .emptyValue: .emptyValue,
        ]
        #expect(failure.reason == expected[error])
        #expect(failure.status == nil && failure.errorDescription?.hasSuffix(".") == true)
        // Each text says what to do next.
        let nextStep = try #require(error.recoverySuggestion)
        #expect(error.localizedDescription.hasSuffix(". " + nextStep) && nextStep.hasSuffix("."))
    }

    private struct TooOld: Error { let quoted: String }

    /// A value whose own coding fails and quotes it.
    private struct Picky: Codable, Sendable {
        var secret: String

        init(secret: String) { self.secret = secret }

        init(from decoder: any Decoder) throws {
            throw TooOld(quoted: try decoder.singleValueContainer().decode(String.self))
        }

        func encode(to encoder: any Encoder) throws {
            throw TooOld(quoted: secret)
        }
    }

    @Test("The error of a value's own coding can be examined, and no text of the failure quotes it")
    func underlyingError() throws {
        let key = ValetKey<Picky>("picky")
        try vault.setString(#""swordfish""#, forKey: key.name)
        let failures =
            [
                (failure { _ = try vault.value(for: key) }, .notDecodable(codingPath: [])),
                (failure { try vault.update(key) { $0.secret = "" } }, .notDecodable(codingPath: [])),
                (failure { try vault.set(Picky(secret: "swordfish"), for: key) }, .notEncodable(codingPath: [])),
            ] as [(ValetFailure?, ValetFailure.Reason)]
        for (failure, reason) in failures {
            let failure = try #require(failure)
            #expect(failure.reason == reason)
            #expect((failure.underlyingError as? TooOld)?.quoted == "swordfish")
            var texts = "\(failure) \(String(reflecting: failure)) \(failure.localizedDescription) \((failure as NSError).userInfo)"
            dump(failure, to: &texts)
            #expect(!texts.contains("swordfish"), "\(texts)")
            #expect(failure.recoverySuggestion != nil)
        }
        // A missing field is an error of the coder, with more detail than the coding path.
        try vault.setString(#"{"user":"Skroob"}"#, forKey: "github")
        let decoding = failure { _ = try vault.value(for: .github) }
        #expect(decoding?.underlyingError is DecodingError)
        #expect(failure { _ = try vault.value(for: .text) }?.underlyingError == nil)
    }

    @Test("An absent value and one that exists already have the status of the keychain in each call")
    func statuses() throws {
        #expect(failure { _ = try vault.value(for: .text) }?.status == errSecItemNotFound)
        #expect(failure { try vault.update(.text) { $0 = "" } }?.status == errSecItemNotFound)
        try vault.set("a", for: .text)
        #expect(failure { try vault.set("b", for: .text, onlyIfAbsent: true) }?.status == errSecDuplicateItem)
    }

    @Test("The errors of calls without types are explained on request")
    func explained() throws {
        let keychain = try keychainWithPasscode()
        let vault = Valet.valet(with: "explained", accessibility: .whenUnlocked)
        let present = try ValetFailure.explaining { () throws(KeychainError) in
            try vault.setString("1", forKey: "key")
            return try vault.string(forKey: "key")
        }
        #expect(present == "1")
        try keychain.lock()
        let failure = #expect(throws: ValetFailure.self) {
            try ValetFailure.explaining { () throws(KeychainError) in try vault.string(forKey: "key") }
        }
        #expect(failure?.reason == .locked && failure?.status == errSecInteractionNotAllowed)
    }
}
#endif
