// SPDX-License-Identifier: Apache-2.0
#if Configuration && !canImport(Darwin)
import Configuration
import ConfigurationTesting
import Foundation
import KeychainTesting
import KeychainTestingTraits
import Testing
import Valet
import ValetConfiguration

@Suite("Secrets as configuration", .inMemoryKeychain, .timeLimit(.minutes(10)))
struct ValetProviderTests {
    private let valet = Valet.valet(with: "server", accessibility: .afterFirstUnlock)

    private var config: ConfigReader { ConfigReader(provider: ValetProvider(valet)) }

    @Test("The provider passes the compatibility test of swift-configuration")
    func compatibility() async throws {
        func set<Value: Codable & Sendable>(_ value: Value, _ key: String) throws { try valet.set(value, for: ValetKey<Value>(key)) }
        let magic = Data("magic".utf8)
        let magic2 = Data("magic2".utf8)
        for (key, value) in [("string", "Hello"), ("other-string", "Other Hello"), ("bool", "yes"), ("other-bool", "FALSE")] {
            try set(value, key)
        }
        for (key, value) in [("int", 42), ("other-int", 24)] { try set(value, key) }
        for (key, value) in [("double", 3.14), ("other-double", 2.72)] { try set(value, key) }
        for (key, value) in [("bytes", magic), ("other-bytes", magic2)] { try set(value, key) }
        for (key, value) in [("stringy-array", ["Hello", "World"]), ("other-stringy-array", ["Hello", "Swift"])] { try set(value, key) }
        for (key, value) in [("inty-array", [42, 24]), ("other-inty-array", [16, 32])] { try set(value, key) }
        for (key, value) in [("doubly-array", [3.14, 2.72]), ("other-doubly-array", [0.9, 1.8])] { try set(value, key) }
        for (key, value) in [("booly-array", [true, false]), ("other-booly-array", [false, true, true])] { try set(value, key) }
        for (key, value) in [("byteChunky-array", [magic, magic2]), ("other-byteChunky-array", [magic, magic2, magic])] {
            try set(value, key)
        }
        try await ProviderCompatTest(provider: ValetProvider(valet)).runTest()
    }

    @Test("Every value is secret, and no description contains it")
    func secrecy() throws {
        try valet.setString("swordfish", forKey: "database-password")
        let provider = ValetProvider(valet)
        let result = try provider.value(forKey: ["database", "password"], type: .string)
        #expect(result.value?.isSecret == true)
        #expect(result.encodedKey == "database-password")
        let snapshot = provider.snapshot()
        var dumped = ""
        dump(snapshot, to: &dumped)
        let shown = "\(result) \(provider) \(provider.providerName) \(snapshot) \(String(reflecting: snapshot)) \(dumped)"
        #expect(!shown.contains("swordfish"))
        // The first bytes of the password, in an array and in a dump.
        #expect(!shown.contains("115, 119") && !shown.contains("- 115"))
        #expect(provider.providerName == "ValetProvider[server]")
    }

    @Test("Another mapping of the keys, and keys that differ only in Unicode form")
    func mapping() throws {
        try valet.setString("1", forKey: "DATABASE/PASSWORD")
        let provider = ValetProvider(valet) { $0.components.joined(separator: "/").uppercased() }
        #expect(try ConfigReader(provider: provider).requiredString(forKey: "database.password") == "1")
        try valet.setString("composed", forKey: "\u{E9}")
        try valet.setString("decomposed", forKey: "e\u{301}")
        let snapshot = ValetProvider(valet).snapshot()
        #expect(try snapshot.value(forKey: ["\u{E9}"], type: .string).value?.content == .string("composed"))
        #expect(try snapshot.value(forKey: ["e\u{301}"], type: .string).value?.content == .string("decomposed"))
    }

    @Test(
        "A stored value of another type is an error that does not show it",
        arguments: [
            ("12 apples", ConfigType.int), ("", .double), ("maybe", .bool), ("a, b", .stringArray), ("[1, \"2\"]", .intArray),
            ("[\"not Base64!\"]", .byteChunkArray), ("9223372036854775808", .int),
        ])
    func unexpectedValue(_ stored: String, _ type: ConfigType) throws {
        try valet.setString(stored.isEmpty ? " " : stored, forKey: "key")
        let provider = ValetProvider(valet)
        for read in [{ try provider.value(forKey: ["key"], type: type) }, { try provider.snapshot().value(forKey: ["key"], type: type) }] {
            let error = #expect(throws: UnexpectedValueError.self) { _ = try read() }
            #expect(error?.description == "A stored value cannot be read as the type \(type.rawValue).")
        }
        try valet.setObject(Data([0xFF]), forKey: "key")
        #expect(throws: UnexpectedValueError.self) { try provider.value(forKey: ["key"], type: .string) }
    }

    @Test("A locked or damaged keychain is an error, and the next provider does not answer in its place")
    func lockedOrDamaged() async throws {
        let keychain = try #require(InMemoryKeychain.current)
        let fallback = InMemoryProvider(values: ["database.password": "from the environment"])
        let locked = Valet.valet(with: "server", accessibility: .whenUnlocked)
        let config = ConfigReader(providers: [ValetProvider(locked), fallback])
        #expect(try config.requiredString(forKey: "database.password") == "from the environment")
        try locked.setString("swordfish", forKey: "database-password")
        try keychain.setPasscode("12345678")
        try keychain.lock()
        #expect(throws: ValetFailure.self) { try config.requiredString(forKey: "database.password") }
        await #expect(throws: ValetFailure.self) { try await config.fetchRequiredString(forKey: "database.password") }
        #expect(throws: ValetFailure.self) { try config.snapshot().requiredString(forKey: "database.password") }
        #expect(throws: ValetFailure.self) { try ValetProvider(locked).snapshot().value(forKey: ["absent"], type: .string) }
        try keychain.unlock()
        #expect(try config.requiredString(forKey: "database.password") == "swordfish")
        try keychain.damageItems(account: "database-password")
        #expect(throws: ValetFailure.self) { try config.requiredString(forKey: "database.password") }
        #expect(throws: ValetFailure.self) { try config.snapshot().requiredString(forKey: "database.password") }
    }

    @Test("A watched value follows changes, also of the lock, and is not repeated")
    func watchedValue() async throws {
        let keychain = try #require(InMemoryKeychain.current)
        let valet = Valet.valet(with: "server", accessibility: .whenUnlocked)
        try keychain.setPasscode("12345678")
        let provider = ValetProvider(valet)
        try await provider.watchValue(forKey: ["key"], type: .string) { updates in
            var values = updates.makeAsyncIterator()
            var update = try await values.next()
            #expect(try text(update) == nil)
            try valet.setString("1", forKey: "key")
            update = try await values.next()
            #expect(try text(update) == "1")
            try valet.setString("other", forKey: "another key")
            try valet.setString("1", forKey: "key")
            try valet.setString("2", forKey: "key")
            update = try await values.next()
            #expect(try text(update) == "2")
            try keychain.lock()
            update = try await values.next()
            let failure = #expect(throws: ValetFailure.self) { try text(update) }
            #expect(failure?.reason == .locked)
            try keychain.unlock()
            update = try await values.next()
            #expect(try text(update) == "2")
            try valet.setString("3", forKey: "key")
            update = try await values.next()
            #expect(try text(update) == "3")
        }
    }

    private func text(_ update: Result<LookupResult, any Error>?) throws -> String? {
        guard case .string(let text)? = try update?.get().value?.content else { return nil }
        return text
    }

    @Test("A watched snapshot keeps its values, and the next one has the new ones")
    func watchedSnapshot() async throws {
        try valet.setString("1", forKey: "key")
        try await ValetProvider(valet).watchSnapshot { updates in
            var snapshots = updates.makeAsyncIterator()
            let first = try #require(await snapshots.next())
            try valet.setString("2", forKey: "key")
            let second = try #require(await snapshots.next())
            #expect(try first.value(forKey: ["key"], type: .int).value?.content == .int(1))
            #expect(try second.value(forKey: ["key"], type: .int).value?.content == .int(2))
        }
    }

    @Test("The example of the documentation")
    func example() async throws {
        try valet.setString("swordfish", forKey: "database-password")
        let secrets = Valet.valet(with: "server", accessibility: .afterFirstUnlock)
        let config = ConfigReader(providers: [ValetProvider(secrets), EnvironmentVariablesProvider()])
        let password = try config.requiredString(forKey: "database.password", isSecret: true)
        #expect(password == "swordfish")
    }

    @Test("The example of the documentation for the names of environment variables")
    func exampleOfImportedVariables() throws {
        try valet.setString("swordfish", forKey: "DATABASE_PASSWORD")
        let imported = Valet.valet(with: "server", accessibility: .afterFirstUnlock)
        let provider = ValetProvider(imported) { key in key.components.joined(separator: "_").uppercased() }
        #expect(try ConfigReader(provider: provider).requiredString(forKey: "database.password") == "swordfish")
    }
}
#endif
