// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing

@testable import Valet

@Suite("Instances")
struct InstanceTests {
    @Test("The same arguments return the same live instance")
    func sameInstance() throws {
        let name = try identifier("same instance")
        let group = try sharedGroup()
        #expect(Valet.valet(with: name, accessibility: .whenUnlocked) === Valet.valet(with: name, accessibility: .whenUnlocked))
        #expect(Valet.iCloudValet(with: name, accessibility: .whenUnlocked) === Valet.iCloudValet(with: name, accessibility: .whenUnlocked))
        #expect(
            Valet.sharedGroupValet(with: group, identifier: name, accessibility: .afterFirstUnlock)
                === Valet.sharedGroupValet(with: group, identifier: name, accessibility: .afterFirstUnlock))
        #expect(
            Valet.iCloudSharedGroupValet(with: group, accessibility: .whenUnlocked)
                === Valet.iCloudSharedGroupValet(with: group, accessibility: .whenUnlocked))
        #expect(
            Valet.valet(withExplicitlySet: name, accessibility: .whenUnlocked)
                === Valet.valet(withExplicitlySet: name, accessibility: .whenUnlocked))
        #expect(
            Valet.sharedGroupValet(withExplicitlySet: group, accessibility: .whenUnlocked)
                === Valet.sharedGroupValet(withExplicitlySet: group, accessibility: .whenUnlocked))
    }

    @Test("An unreferenced valet is released, and created again on request")
    func released() throws {
        weak var released: Valet?
        do {
            let valet = try valet("let go")
            released = valet
            #expect(released != nil)
        }
        #expect(released == nil)
        #expect(try valet("let go").identifier.description == "let go")
    }

    @Test("Creating and releasing many valets preserves the live instances")
    func manyInstances() throws {
        let kept = try valet("kept")
        for index in 0..<1_000 { _ = try valet("passing \(index)") }
        #expect(try valet("kept") === kept)
    }

    @Test("Concurrent requests return one instance")
    func concurrentRequests() async throws {
        let valets = try await withThrowingTaskGroup(of: Valet.self) { group in
            for _ in 0..<64 { group.addTask { try valet("asked at once") } }
            return try await group.reduce(into: [Valet]()) { $0.append($1) }
        }
        #expect(Set(valets.map(ObjectIdentifier.init)).count == 1)
    }

    @Test("Each kind, name and accessibility has its own namespace, which determines equality and hash")
    func equality() throws {
        let name = try identifier("Druidia")
        let other = try identifier("Spaceball")
        let group = try sharedGroup()
        let appGroup = try #require(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia"))
        let all = [
            Valet.valet(with: name, accessibility: .whenUnlocked),
            Valet.valet(with: name, accessibility: .afterFirstUnlock),
            Valet.valet(with: other, accessibility: .whenUnlocked),
            Valet.iCloudValet(with: name, accessibility: .whenUnlocked),
            Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked),
            Valet.sharedGroupValet(with: group, identifier: name, accessibility: .whenUnlocked),
            Valet.sharedGroupValet(with: appGroup, accessibility: .whenUnlocked),
            Valet.iCloudSharedGroupValet(with: group, accessibility: .whenUnlocked),
            Valet.valet(withExplicitlySet: name, accessibility: .whenUnlocked),
            Valet.valet(withExplicitlySet: name, accessibility: .afterFirstUnlock),
            Valet.iCloudValet(withExplicitlySet: name, accessibility: .whenUnlocked),
            Valet.sharedGroupValet(withExplicitlySet: group, accessibility: .whenUnlocked),
            Valet.iCloudSharedGroupValet(withExplicitlySet: group, accessibility: .whenUnlocked),
        ]
        #expect(Set(all).count == all.count)
        #expect(Set(all.map(ObjectIdentifier.init)).count == all.count)
        #expect(Valet.valet(with: name, accessibility: .whenUnlocked).hashValue == all[0].hashValue)
    }

    @Test("An explicitly set name equal to another valet's service has the same namespace, but its own identifier")
    func sameSandboxByOtherArguments() throws {
        let standard = try valet("Druidia")
        let explicit = try explicitValet("VAL_VALValet_initWithIdentifier:accessibility:_Druidia_AccessibleWhenUnlocked", .whenUnlocked)
        #expect(standard == explicit)
        #expect(standard.hashValue == explicit.hashValue)
        #expect(standard !== explicit)
        #expect(standard.identifier.description == "Druidia")
    }

    @Test("Names are compared byte by byte, as in the keychain")
    func normalisation() throws {
        let composed = "caf\u{E9}"
        let decomposed = "cafe\u{301}"
        try #require(composed == decomposed)
        let first = try valet(composed)
        let second = try valet(decomposed)
        #expect(first !== second)
        #expect(first != second)
        #expect(second.identifier.description.utf8.elementsEqual(decomposed.utf8))
    }

    @Test("A valet has the properties that it was created with")
    func properties() throws {
        let name = try identifier("Druidia")
        let group = try sharedGroup()
        let standard = Valet.valet(with: name, accessibility: .afterFirstUnlockThisDeviceOnly)
        #expect(standard.accessibility == .afterFirstUnlockThisDeviceOnly)
        #expect(standard.identifier.description == "Druidia")
        #expect(Valet.iCloudValet(with: name, accessibility: .afterFirstUnlock).accessibility == .afterFirstUnlock)
        #expect(Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked).identifier.description == "Druidia")
        let several = Valet.sharedGroupValet(with: group, identifier: try identifier("Skroob"), accessibility: .whenUnlocked)
        #expect(several.identifier.description == "Skroob")
    }

    @Test("The description contains identifier, accessibility and kind")
    func description() throws {
        let standard = try valet("Druidia", .whenUnlockedThisDeviceOnly)
        #expect(standard.description.contains("Druidia"))
        #expect(standard.description.contains("AccessibleWhenUnlockedThisDeviceOnly"))
        #expect(standard.description.contains("(Valet)"))
        let cloud = Valet.iCloudValet(with: try identifier("Druidia"), accessibility: .afterFirstUnlock)
        #expect(cloud.description.contains("Druidia"))
        #expect(cloud.description.contains("AccessibleAfterFirstUnlock"))
        #expect(cloud.description.contains("(iCloud)"))
    }
}

@Suite("The registry of live instances")
struct InstanceRegistryTests {
    private final class Instance: Sendable {}

    @Test("The registry creates one instance per key while it is referenced")
    func madeOnce() {
        let registry = InstanceRegistry<Int, Instance>()
        var made = 0
        let make = {
            made += 1
            return Instance()
        }
        let first = registry.instance(for: 1, make: make)
        let again = registry.instance(for: 1, make: make)
        let other = registry.instance(for: 2, make: make)
        #expect(first === again)
        #expect(first !== other)
        #expect(made == 2)
    }

    @Test("Released instances are created again, and removing their entries preserves the live ones")
    func sweeping() {
        let registry = InstanceRegistry<Int, Instance>()
        let kept = (0..<50).map { key in registry.instance(for: key) { Instance() } }
        for key in 50..<5_000 { _ = registry.instance(for: key) { Instance() } }
        for (key, instance) in kept.enumerated() { #expect(registry.instance(for: key) { Instance() } === instance) }
    }
}

@Suite("Identifiers")
struct IdentifierTests {
    @Test("An identifier is not empty", arguments: [nil, ""])
    func emptyIdentifier(text: String?) {
        #expect(Identifier(nonEmpty: text) == nil)
    }

    @Test("The description of an identifier is its text")
    func description() throws {
        #expect(try identifier("Druidia").description == "Druidia")
    }

    @Test("The description of a shared group is prefix, dot, group")
    func sharedGroupDescription() throws {
        #expect(try sharedGroup().description == "AppID12345.Druidia")
        #expect(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia")?.description == "group.Druidia")
    }

    @Test("A shared group has a prefix and a group", arguments: [("", "Druidia"), ("AppID12345", ""), ("AppID12345", nil)])
    func emptySharedGroup(prefix: String, group: String?) {
        #expect(SharedGroupIdentifier(appIDPrefix: prefix, nonEmptyGroup: group) == nil)
    }

    @Test("An application group has a group", arguments: [nil, ""])
    func emptyApplicationGroup(group: String?) {
        #expect(SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: group) == nil)
    }

    #if !os(macOS)
    @Test("Off macOS the prefix of an application group is the word group", arguments: ["", "Group", "AppID12345", "group."])
    func wrongGroupPrefix(prefix: String) {
        #expect(SharedGroupIdentifier(groupPrefix: prefix, nonEmptyGroup: "Druidia") == nil)
    }
    #endif
}

@Suite("Accessibilities")
struct AccessibilityTests {
    @Test("Raw values and kSecAttrAccessible values are those of other Valet versions")
    func values() {
        #expect(Accessibility.allCases.map(\.rawValue) == [1, 2, 4, 5, 6])
        #expect(
            Accessibility.allCases.map(\.secAccessibilityAttribute) == [
                kSecAttrAccessibleWhenUnlocked as String,
                kSecAttrAccessibleAfterFirstUnlock as String,
                kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String,
                kSecAttrAccessibleWhenUnlockedThisDeviceOnly as String,
                kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String,
            ])
        #expect(
            Accessibility.allCases == [
                .whenUnlocked, .afterFirstUnlock, .whenPasscodeSetThisDeviceOnly, .whenUnlockedThisDeviceOnly,
                .afterFirstUnlockThisDeviceOnly,
            ])
    }

    @Test("iCloud valets have the two accessibilities that may leave the device")
    func cloudValues() {
        #expect(CloudAccessibility.allCases.map(\.rawValue) == [1, 2])
        #expect(CloudAccessibility.allCases.map(\.accessibility) == [.whenUnlocked, .afterFirstUnlock])
        for accessibility in CloudAccessibility.allCases {
            #expect(accessibility.secAccessibilityAttribute == accessibility.accessibility.secAccessibilityAttribute)
            #expect(accessibility.description == accessibility.accessibility.description)
        }
    }
}
