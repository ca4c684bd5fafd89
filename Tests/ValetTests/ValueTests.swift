// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing
import Valet

@Suite("Values", .keychain(accessGroups: testAccessGroups))
struct ValueTests {
    static let makers: [@Sendable () throws -> Valet] = [
        { try valet() },
        { Valet.iCloudValet(with: try identifier("Druidia"), accessibility: .afterFirstUnlock) },
        { Valet.sharedGroupValet(with: try sharedGroup(), accessibility: .whenUnlockedThisDeviceOnly) },
        { Valet.iCloudSharedGroupValet(with: try sharedGroup(), accessibility: .whenUnlocked) },
        { try explicitValet("Druidia", .afterFirstUnlockThisDeviceOnly) },
        { Valet.iCloudValet(withExplicitlySet: try identifier("Druidia"), accessibility: .whenUnlocked) },
        { Valet.sharedGroupValet(withExplicitlySet: try sharedGroup(), accessibility: .whenUnlocked) },
        { Valet.iCloudSharedGroupValet(withExplicitlySet: try sharedGroup(), accessibility: .whenUnlocked) },
    ]

    @Test("Each kind of valet stores, finds, lists and removes values", arguments: makers.indices)
    func roundTrip(maker: Int) throws {
        let valet = try Self.makers[maker]()
        #expect(valet.canAccessKeychain())
        #expect(try valet.allKeys().isEmpty)
        #expect(try !valet.containsObject(forKey: "Skroob"))
        try valet.setString("12345", forKey: "Skroob")
        try valet.setObject(bytes("melon"), forKey: "Helmet")
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try valet.object(forKey: "Helmet") == bytes("melon"))
        #expect(try valet.containsObject(forKey: "Skroob"))
        #expect(try valet.allKeys() == ["Skroob", "Helmet"])
        try valet.removeObject(forKey: "Skroob")
        #expect(try valet.allKeys() == ["Helmet"])
        try valet.removeAllObjects()
        #expect(try valet.allKeys().isEmpty)
        #expect(valet.canAccessKeychain())
    }

    @Test("Valets do not share values")
    func isolation() throws {
        let valets = try Self.makers.map { try $0() } + [try valet("Druidia", .afterFirstUnlock), try valet("Spaceball")]
        for (index, valet) in valets.enumerated() { try valet.setString("value \(index)", forKey: "Skroob") }
        for (index, valet) in valets.enumerated() {
            #expect(try valet.string(forKey: "Skroob") == "value \(index)")
            #expect(try valet.allKeys() == ["Skroob"])
        }
        try valets[0].removeAllObjects()
        for valet in valets.dropFirst() { #expect(try valet.containsObject(forKey: "Skroob")) }
    }

    @Test("Writing again replaces the value, in the same item")
    func overwriting() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        let before = try #require(RawItems.only()[kSecValuePersistentRef as String] as? Data)
        try valet.setString("54321", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "54321")
        #expect(try RawItems.only()[kSecValuePersistentRef as String] as? Data == before)
    }

    @Test("A missing key is not found, and removing it is not an error")
    func absentKey() throws {
        let valet = try valet()
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(throws: KeychainError.itemNotFound) { try valet.object(forKey: "Skroob") }
        #expect(try !valet.containsObject(forKey: "Skroob"))
        try valet.removeObject(forKey: "Skroob")
        try valet.removeAllObjects()
    }

    @Test("All methods reject an empty key")
    func emptyKey() throws {
        let valet = try valet()
        #expect(throws: KeychainError.emptyKey) { try valet.setString("12345", forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.setObject(bytes("12345"), forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.string(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.object(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.containsObject(forKey: "") }
        #expect(throws: KeychainError.emptyKey) { try valet.removeObject(forKey: "") }
    }

    @Test("An empty value is rejected, and the old one is kept")
    func emptyValue() throws {
        let valet = try valet()
        try valet.setString("12345", forKey: "Skroob")
        #expect(throws: KeychainError.emptyValue) { try valet.setString("", forKey: "Skroob") }
        #expect(throws: KeychainError.emptyValue) { try valet.setObject(Data(), forKey: "Skroob") }
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("Bytes that are not UTF-8 are not found as text, but can be read as bytes")
    func notText() throws {
        let valet = try valet()
        let value = Data([0x66, 0xFF, 0xFE])
        try valet.setObject(value, forKey: "Skroob")
        #expect(throws: KeychainError.itemNotFound) { try valet.string(forKey: "Skroob") }
        #expect(try valet.object(forKey: "Skroob") == value)
    }

    @Test(
        "Text is preserved byte by byte",
        arguments: ["\u{FEFF}with a byte order mark", "cafe\u{301}", "a\u{0}b\nc\r\n", "\u{FFFD}", " ", "🍉 مرحبا"])
    func exactText(text: String) throws {
        let valet = try valet()
        try valet.setString(text, forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob").utf8.elementsEqual(text.utf8))
    }

    @Test(
        "Keys are compared byte by byte",
        arguments: ["caf\u{E9}", "a\u{0}b", " ", "🍉", "skroob", String(repeating: "k", count: 65_536)])
    func exactKeys(key: String) throws {
        let valet = try valet()
        try valet.setString("other", forKey: "Skroob")
        try valet.setString("other", forKey: "cafe\u{301}")
        try valet.setString("12345", forKey: key)
        #expect(try valet.string(forKey: key) == "12345")
        #expect(try valet.string(forKey: "cafe\u{301}") == "other")
        #expect(try RawItems.all().count == 3)
    }

    @Test("A value of one mebibyte is stored, and can be replaced by a small one")
    func largeValue() throws {
        let valet = try valet()
        let large = Data((0..<1_048_576).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        try valet.setObject(large, forKey: "Skroob")
        #expect(try valet.object(forKey: "Skroob") == large)
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("A slice of data is stored without the rest of its buffer")
    func slice() throws {
        let valet = try valet()
        try valet.setObject(bytes("--12345--")[2..<7], forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("An item without a value, from another program, is not found when read")
    func itemWithoutValue() throws {
        let valet = try explicitValet("Druidia", .whenUnlocked)
        #expect(RawItems.add(account: "Skroob", service: "Druidia", value: nil) == errSecSuccess)
        #expect(throws: KeychainError.itemNotFound) { try valet.object(forKey: "Skroob") }
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("Explicitly named valets of two accessibilities cannot both have a key, and the existing value is kept")
    func oneItemForTwoAccessibilities() throws {
        let old = try explicitValet("Druidia", .whenUnlocked)
        let new = try explicitValet("Druidia", .afterFirstUnlock)
        try old.setString("12345", forKey: "Skroob")
        #expect(try !new.containsObject(forKey: "Skroob"))
        #expect(throws: KeychainError.couldNotAccessKeychain) { try new.setString("54321", forKey: "Skroob") }
        #expect(try old.string(forKey: "Skroob") == "12345")
    }

    @Test("Two instances of one namespace share their values")
    func sharedSandbox() throws {
        try valet().setString("12345", forKey: "Skroob")
        #expect(try valet().string(forKey: "Skroob") == "12345")
    }
}

@Suite("Concurrent access", .keychain(accessGroups: testAccessGroups))
struct ConcurrencyTests {
    @Test("Concurrent writes of one key all succeed, and one of the values is stored completely")
    func oneKey() async throws {
        let valet = try valet()
        let values = (0..<32).map { String(repeating: "\($0) ", count: 200) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for value in values { group.addTask { try valet.setString(value, forKey: "Skroob") } }
            try await group.waitForAll()
        }
        #expect(values.contains(try valet.string(forKey: "Skroob")))
        #expect(try RawItems.all().count == 1)
    }

    @Test("Concurrent writes of new keys all succeed")
    func newKeys() async throws {
        let valet = try valet()
        for round in 0..<200 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<4 { group.addTask { try valet.setString("\(writer)", forKey: "key \(round)") } }
                try await group.waitForAll()
            }
        }
        #expect(try valet.allKeys().count == 200)
    }

    @Test("A reader finds a value at every moment while it is repeatedly replaced")
    func neverAbsent() async throws {
        let valet = try valet()
        try valet.setString("0", forKey: "Skroob")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask { for round in 0..<50 { try valet.setString("\(writer) \(round)", forKey: "Skroob") } }
            }
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 {
                        let value = try valet.string(forKey: "Skroob")
                        let isThere = try valet.containsObject(forKey: "Skroob")
                        #expect(!value.isEmpty && isThere)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("Concurrent writes and removals of one key all succeed")
    func writersAndRemovers() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask { for _ in 0..<50 { try valet.setString("\(task)", forKey: "Skroob") } }
                group.addTask { for _ in 0..<50 { try valet.removeObject(forKey: "Skroob") } }
            }
            try await group.waitForAll()
        }
        try valet.setString("12345", forKey: "Skroob")
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("Concurrent writes of different keys are all stored")
    func ownKeys() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<64 { group.addTask { try valet.setString("value \(index)", forKey: "key \(index)") } }
            try await group.waitForAll()
        }
        #expect(try valet.allKeys() == Set((0..<64).map { "key \($0)" }))
        for index in 0..<64 { #expect(try valet.string(forKey: "key \(index)") == "value \(index)") }
    }

    @Test("Of two concurrent migrations of the same items, one migrates all and the other changes nothing")
    func twoMigrations() async throws {
        let source = try valet("source")
        let destination = try valet("destination")
        for index in 0..<16 { try source.setString("value \(index)", forKey: "key \(index)") }
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<2 {
                group.addTask { (try? destination.migrateObjects(from: source, removeOnCompletion: false)) != nil }
            }
            return await group.reduce(into: [Bool]()) { $0.append($1) }
        }
        let keys = Set((0..<16).map { "key \($0)" })
        #expect(outcomes.filter { $0 }.count == 1)
        #expect(try source.allKeys() == keys)
        #expect(try destination.allKeys() == keys)
    }
}
