// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing
import Valet

@Suite("Checks before a migration", .keychain(accessGroups: testAccessGroups))
struct MigrationCheckTests {
    static let invalidQueries: [(String, SendableQuery)] = [
        ("empty", SendableQuery([:])),
        ("no class", SendableQuery([kSecAttrService as String: "old"])),
        ("another class", SendableQuery(query(service: "old", [kSecClass as String: kSecClassInternetPassword as String]))),
        ("one item", SendableQuery(query(service: "old", [kSecMatchLimit as String: kSecMatchLimitOne as String]))),
        ("one item, as a number", SendableQuery(query(service: "old", [kSecMatchLimit as String: 1]))),
        ("returning data", SendableQuery(query(service: "old", [kSecReturnData as String: true]))),
        ("returning data, as a Foundation object", SendableQuery(query(service: "old", [kSecReturnData as String: NSNumber(value: true)]))),
        ("no attributes", SendableQuery(query(service: "old", [kSecReturnAttributes as String: false]))),
        ("returning a reference", SendableQuery(query(service: "old", [kSecReturnRef as String: true]))),
        ("no persistent reference", SendableQuery(query(service: "old", [kSecReturnPersistentRef as String: false]))),
        ("an access control", SendableQuery(query(service: "old", [kSecAttrAccessControl as String: "any"]))),
    ]

    @Test("A query for other classes, or with options that the migration sets, is invalid", arguments: invalidQueries)
    func invalidQuery(reason: String, query: SendableQuery) throws {
        let query = query.entries
        let valet = try valet()
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345")) == errSecSuccess)
        #expect(throws: MigrationError.invalidQuery, "\(reason)") { try valet.migrateObjects(matching: query, removeOnCompletion: true) }
        #expect(throws: MigrationError.invalidQuery, "\(reason)") { try valet.migrateObjects(matching: query) { _ in nil } }
        #expect(try RawItems.all().count == 1)
    }

    @Test(
        "Valid options in a query",
        arguments: [
            [kSecMatchLimit as String: AnyHashable(kSecMatchLimitAll as String)],
            [kSecReturnData as String: AnyHashable(false)],
            [kSecReturnAttributes as String: AnyHashable(true)],
            [kSecReturnRef as String: AnyHashable(false)],
            [kSecReturnPersistentRef as String: AnyHashable(true)],
            [kSecAttrSynchronizable as String: AnyHashable(kSecAttrSynchronizableAny as String)],
            [kSecUseDataProtectionKeychain as String: AnyHashable(true)],
        ].map(SendableQuery.init))
    func validQuery(more: SendableQuery) throws {
        let valet = try valet()
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("12345")) == errSecSuccess)
        try valet.migrateObjects(matching: query(service: "old", more.entries), removeOnCompletion: true)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.all().count == 1)
    }

    @Test("A migration without items throws itemNotFound")
    func nothingFound() throws {
        let valet = try valet()
        #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: true) }
        #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjects(matching: query(service: "old")) { _ in nil } }
        #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjects(from: Self.empty(), removeOnCompletion: true) }
        #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjects(from: Self.empty()) { _ in nil } }
    }

    private static func empty() throws -> Valet { try valet("nothing in here") }

    /// An item that cannot be migrated, and the expected error.
    static let badItems: [(account: String, value: String?, error: MigrationError)] = [
        ("", "12345", .keyToMigrateInvalid),
        ("Skroob", "", .dataToMigrateInvalid),
        ("Skroob", nil, .dataToMigrateInvalid),
        ("taken", "12345", .keyToMigrateAlreadyExistsInValet),
        // The key is checked before the value, and both before the destination.
        ("", "", .keyToMigrateInvalid),
        ("taken", "", .dataToMigrateInvalid),
    ]

    @Test("One item that cannot be migrated fails the migration, and nothing changes", arguments: badItems)
    func badItem(account: String, value: String?, error: MigrationError) throws {
        let valet = try valet()
        try valet.setString("old value", forKey: "taken")
        #expect(RawItems.add(account: "good 1", service: "old", value: bytes("1")) == errSecSuccess)
        #expect(RawItems.add(account: account, service: "old", value: value.map(bytes)) == errSecSuccess)
        #expect(RawItems.add(account: "good 2", service: "old", value: bytes("2")) == errSecSuccess)
        let before = try RawItems.fingerprint()
        #expect(throws: error) { try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: true) }
        #expect(throws: error) { try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: false) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("A key that is not text can be mapped, but not migrated unchanged")
    func accountThatIsNoText() throws {
        let valet = try valet()
        let account = Data([0xFF, 0xFE])
        #expect(RawItems.add(account: account, service: "old", value: bytes("12345")) == errSecSuccess)
        #expect(throws: MigrationError.keyToMigrateInvalid) {
            try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        }
        try valet.migrateObjects(matching: query(service: "old")) { pair in
            #expect(pair.key as? Data == account)
            return MigratableKeyValuePair(key: "Skroob", value: pair.value)
        }
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("An account that is the bytes of a text is the key of that text", arguments: [false, true])
    func accountThatIsBytesOfText(removingOriginals: Bool) throws {
        let valet = try valet()
        #expect(RawItems.add(account: bytes("token"), service: "old", value: bytes("12345")) == errSecSuccess)
        let identifier = try #require(Identifier(nonEmpty: "old"))
        let original = Valet.valet(withExplicitlySet: identifier, accessibility: .whenUnlocked)
        #expect(try original.allKeys() == ["token"])
        #expect(try original.string(forKey: "token") == "12345")
        try valet.migrateObjects(matching: query(service: "old"), removeOnCompletion: removingOriginals)
        #expect(try valet.string(forKey: "token") == "12345")
        #expect(try original.allKeys().isEmpty == removingOriginals)
    }

    @Test("Such items move to a valet with the same service and another accessibility")
    func accountThatIsBytesChangesAccessibility() throws {
        #expect(RawItems.add(account: bytes("token"), service: "old", value: bytes("12345")) == errSecSuccess)
        let identifier = try #require(Identifier(nonEmpty: "old"))
        let destination = Valet.valet(withExplicitlySet: identifier, accessibility: .afterFirstUnlock)
        try destination.migrateObjects(matching: query(service: "old"), removeOnCompletion: true)
        #expect(try destination.string(forKey: "token") == "12345")
    }

    @Test("Two items with the same account in two services fail the migration")
    func duplicateKey() throws {
        let valet = try valet()
        #expect(RawItems.add(account: "Skroob", service: "old", value: bytes("1")) == errSecSuccess)
        #expect(RawItems.add(account: "Skroob", service: "older", value: bytes("2")) == errSecSuccess)
        let before = try RawItems.fingerprint()
        let both: [String: AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword as String, kSecAttrAccount as String: "Skroob",
        ]
        #expect(throws: MigrationError.duplicateKeyToMigrate) { try valet.migrateObjects(matching: both, removeOnCompletion: true) }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("Keys with different bytes are different keys")
    func normalisation() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try source.setString("1", forKey: "caf\u{E9}")
        try source.setString("2", forKey: "cafe\u{301}")
        try destination.migrateObjects(from: source, removeOnCompletion: true)
        #expect(try destination.string(forKey: "caf\u{E9}") == "1")
        #expect(try destination.string(forKey: "cafe\u{301}") == "2")
    }

    @Test(
        "The result of a mapping is checked like an item",
        arguments: [
            ("", "12345", MigrationError.keyToMigrateInvalid),
            ("same", "12345", .duplicateKeyToMigrate),
            ("good", "", .dataToMigrateInvalid),
            ("taken", "12345", .keyToMigrateAlreadyExistsInValet),
        ])
    func badMapping(key: String, value: String, error: MigrationError) throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try destination.setString("old value", forKey: "taken")
        try source.setString("1", forKey: "a")
        try source.setString("2", forKey: "b")
        let before = try RawItems.fingerprint()
        #expect(throws: error) {
            try destination.migrateObjects(from: source) { _ in MigratableKeyValuePair(key: key, value: value) }
        }
        #expect(try RawItems.fingerprint() == before)
    }

    @Test("Migrating a valet into itself fails")
    func migratingIntoItself() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        let before = try RawItems.fingerprint()
        #expect(throws: MigrationError.keyToMigrateAlreadyExistsInValet) {
            try valet.migrateObjects(from: valet, removeOnCompletion: true)
        }
        #expect(try RawItems.fingerprint() == before)
    }
}

/// `@unchecked Sendable`: the values are immutable strings and Booleans, which `AnyHashable` does not express.
struct SendableQuery: @unchecked Sendable {
    let entries: [String: AnyHashable]

    init(_ entries: [String: AnyHashable]) {
        self.entries = entries
    }
}
