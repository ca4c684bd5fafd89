// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import ServedKeychain
import Testing
import Valet

/// Other versions of Valet find items by exactly these attributes, so they are written out here and not computed.
@Suite("Attributes of items that a valet stores", .keychain(accessGroups: testAccessGroups))
struct StoredAttributeTests {
    static let standardServices: [(Accessibility, String)] = [
        (.whenUnlocked, "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenUnlocked"),
        (.afterFirstUnlock, "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlock"),
        (.whenUnlockedThisDeviceOnly, "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenUnlockedThisDeviceOnly"),
        (
            .afterFirstUnlockThisDeviceOnly,
            "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlockThisDeviceOnly"
        ),
    ]

    @Test("A standard valet", arguments: standardServices)
    func standard(accessibility: Accessibility, service: String) throws {
        try check(Valet.valet(with: identifier("Druidia"), accessibility: accessibility), service: service, group: nil)
    }

    static let cloudServices: [(CloudAccessibility, String)] = [
        (.whenUnlocked, "VAL_VALSynchronizableValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenUnlocked"),
        (.afterFirstUnlock, "VAL_VALSynchronizableValet_initWithIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlock"),
    ]

    @Test("An iCloud valet", arguments: cloudServices)
    func cloud(accessibility: CloudAccessibility, service: String) throws {
        try check(Valet.iCloudValet(with: identifier("Druidia"), accessibility: accessibility), service: service, group: nil, cloud: true)
    }

    static let groupServices: [(Accessibility, String)] = [
        (.whenUnlocked, "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleWhenUnlocked"),
        (.afterFirstUnlock, "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlock"),
        (
            .whenUnlockedThisDeviceOnly,
            "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleWhenUnlockedThisDeviceOnly"
        ),
        (
            .afterFirstUnlockThisDeviceOnly,
            "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlockThisDeviceOnly"
        ),
    ]

    @Test("A shared group valet", arguments: groupServices)
    func sharedGroupValet(accessibility: Accessibility, service: String) throws {
        let valet = Valet.sharedGroupValet(with: try sharedGroup(), accessibility: accessibility)
        try check(valet, service: service, group: "AppID12345.Druidia")
    }

    @Test("A shared group valet with an identifier")
    func sharedGroupValetWithIdentifier() throws {
        let valet = Valet.sharedGroupValet(with: try sharedGroup(), identifier: try identifier("Skroob"), accessibility: .whenUnlocked)
        try check(
            valet, service: "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_Skroob_AccessibleWhenUnlocked",
            group: "AppID12345.Druidia")
    }

    @Test("A shared group valet of an application group")
    func applicationGroupValet() throws {
        let group = try #require(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia"))
        try check(
            Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked),
            service: "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleWhenUnlocked",
            group: "group.Druidia")
    }

    @Test("An iCloud shared group valet, with and without an identifier")
    func cloudSharedGroupValet() throws {
        try check(
            Valet.iCloudSharedGroupValet(with: sharedGroup(), accessibility: .afterFirstUnlock),
            service: "VAL_VALSynchronizableValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleAfterFirstUnlock",
            group: "AppID12345.Druidia", cloud: true)
        try check(
            Valet.iCloudSharedGroupValet(with: sharedGroup(), identifier: identifier("Skroob"), accessibility: .whenUnlocked),
            service: "VAL_VALSynchronizableValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_Skroob_AccessibleWhenUnlocked",
            group: "AppID12345.Druidia", cloud: true)
    }

    @Test("An explicitly set name is the whole service")
    func explicitlySet() throws {
        let name = try identifier("My secrets")
        try check(Valet.valet(withExplicitlySet: name, accessibility: .whenUnlocked), service: "My secrets", group: nil)
        try check(Valet.iCloudValet(withExplicitlySet: name, accessibility: .whenUnlocked), service: "My secrets", group: nil, cloud: true)
        try check(
            Valet.sharedGroupValet(withExplicitlySet: sharedGroup(), accessibility: .afterFirstUnlock), service: "Druidia",
            group: "AppID12345.Druidia")
        try check(
            Valet.iCloudSharedGroupValet(withExplicitlySet: sharedGroup(), accessibility: .afterFirstUnlock), service: "Druidia",
            group: "AppID12345.Druidia", cloud: true)
    }

    /// Stores a value and reads the item without the valet.
    private func check(_ valet: Valet, service: String, group: String?, cloud: Bool = false) throws {
        try valet.setString("12345", forKey: "Skroob")
        let item = try RawItems.only()
        #expect(item[kSecAttrService as String] as? String == service)
        #expect(item[kSecAttrAccount as String] as? String == "Skroob")
        #expect(item[kSecValueData as String] as? Data == bytes("12345"))
        #expect(item[kSecAttrAccessible as String] as? String == valet.accessibility.secAccessibilityAttribute)
        #expect((item[kSecAttrSynchronizable as String] as? NSNumber)?.boolValue == cloud)
        if let group { #expect(item[kSecAttrAccessGroup as String] as? String == group) }
        try valet.removeAllObjects()
    }
}

@Suite("Values stored with a withdrawn accessibility", .keychain(accessGroups: testAccessGroups))
struct WithdrawnAccessibilityTests {
    /// A value of an earlier version, and the valet that it belongs to.
    struct Legacy: Sendable {
        let service: String
        let attributes: [String: String]
        var isSynchronizable = false
        let valet: @Sendable () throws -> Valet
    }

    static let always: [Legacy] = [
        Legacy(service: "VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleAlways", attributes: [:]) {
            try valet("Druidia", .afterFirstUnlock)
        },
        Legacy(
            service: "VAL_VALSynchronizableValet_initWithIdentifier:accessibility:_Druidia_AccessibleAlways", attributes: [:],
            isSynchronizable: true
        ) {
            Valet.iCloudValet(with: try identifier("Druidia"), accessibility: .whenUnlocked)
        },
        Legacy(
            service: "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_AccessibleAlways",
            attributes: [kSecAttrAccessGroup as String: "AppID12345.Druidia"]
        ) {
            Valet.sharedGroupValet(with: try sharedGroup(), accessibility: .whenUnlocked)
        },
        Legacy(
            service: "VAL_VALValet_initWithSharedAccessGroupIdentifier:accessibility:_Druidia_Skroob_AccessibleAlways",
            attributes: [kSecAttrAccessGroup as String: "AppID12345.Druidia"]
        ) {
            Valet.sharedGroupValet(with: try sharedGroup(), identifier: try identifier("Skroob"), accessibility: .whenUnlocked)
        },
        Legacy(service: "Druidia", attributes: [:]) { try explicitValet("Druidia", .whenUnlocked) },
    ]

    @Test("always", arguments: always.indices)
    func fromAlways(index: Int) throws {
        let legacy = Self.always[index]
        let valet = try legacy.valet()
        try add(legacy, service: legacy.service, accessible: "dk")
        #expect(try valet.allKeys().isEmpty)
        try valet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: true)
        try checkMoved(to: valet)
        #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: true) }
    }

    @Test("alwaysThisDeviceOnly", arguments: always.indices.filter { !always[$0].isSynchronizable })
    func fromAlwaysThisDeviceOnly(index: Int) throws {
        let legacy = Self.always[index]
        let valet = try legacy.valet()
        let service = legacy.service.replacingOccurrences(of: "_AccessibleAlways", with: "_AccessibleAlwaysThisDeviceOnly")
        try add(legacy, service: service, accessible: "dku")
        try valet.migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(removeOnCompletion: true)
        try checkMoved(to: valet)
    }

    @Test("The original items are kept on request")
    func keepingOriginals() throws {
        let legacy = Self.always[0]
        let valet = try legacy.valet()
        try add(legacy, service: legacy.service, accessible: "dk")
        try valet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: false)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.all().count == 2)
    }

    @Test("A valet without such values reports 'not found'")
    func nothingThere() throws {
        for legacy in Self.always {
            let valet = try legacy.valet()
            #expect(throws: KeychainError.itemNotFound) { try valet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: true) }
            #expect(throws: KeychainError.itemNotFound) {
                try valet.migrateObjectsFromAlwaysAccessibleThisDeviceOnlyValet(removeOnCompletion: true)
            }
        }
    }

    private func add(_ legacy: Legacy, service: String, accessible: String) throws {
        var more: [String: Any] = legacy.attributes
        more[kSecAttrAccessible as String] = accessible
        if legacy.isSynchronizable { more[kSecAttrSynchronizable as String] = true }
        try #require(RawItems.add(account: "Skroob", service: service, value: bytes("12345"), more) == errSecSuccess)
    }

    private func checkMoved(to valet: Valet) throws {
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.only()[kSecAttrAccessible as String] as? String == valet.accessibility.secAccessibilityAttribute)
    }
}
