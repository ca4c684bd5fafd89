// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing
import Valet

@Suite("Values kept with an accessibility that was withdrawn", .inMemoryKeychain(accessGroups: testAccessGroups))
struct WithdrawnAccessibilityTests {
    /// What an earlier version wrote, and the valet it belongs to now.
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

    @Test("The old items stay if asked to")
    func keepingOriginals() throws {
        let legacy = Self.always[0]
        let valet = try legacy.valet()
        try add(legacy, service: legacy.service, accessible: "dk")
        try valet.migrateObjectsFromAlwaysAccessibleValet(removeOnCompletion: false)
        #expect(try valet.string(forKey: "Skroob") == "12345")
        #expect(try RawItems.all().count == 2)
    }

    @Test("Where there never were such values, there is nothing to migrate")
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
