// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

/// Other versions of Valet find items by exactly these attributes, so they are written out here and not computed.
@Suite("What a valet writes into its items", .inMemoryKeychain(accessGroups: testAccessGroups))
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

    @Test("Explicitly set names stand alone")
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

    /// Stores a value and looks at the item past the valet.
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
