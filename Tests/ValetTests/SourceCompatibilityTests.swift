// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestingTraits
import Testing
import Valet

/// Code written for Valet 4.3, where methods throw untyped errors, and for 5.1, where they throw `KeychainError`.
@Suite("Source compatibility", .inMemoryKeychain(accessGroups: testAccessGroups))
struct SourceCompatibilityTests {
    /// As users of 4.3 write it, where every method `throws` and errors arrive as `any Error`.
    private func untyped(_ valet: Valet) throws -> String {
        do {
            return try valet.string(forKey: "absent")
        } catch KeychainError.itemNotFound {
            return "not found"
        } catch {
            return "\(error)"
        }
    }

    /// As users of 5.1 write it: the error is a `KeychainError`, and a switch over it needs no default.
    private func typed(_ valet: Valet) -> String {
        do {
            return try valet.string(forKey: "")
        } catch {
            switch error {
            case .couldNotAccessKeychain, .userCancelled, .itemNotFound, .missingEntitlement, .emptyValue: return "other"
            case .emptyKey: return "empty key"
            }
        }
    }

    @Test("Errors are caught as in 4.3 and as in 5.1")
    func errors() throws {
        #expect(try untyped(valet()) == "not found")
        #expect(try typed(valet()) == "empty key")
        let error: any Error = KeychainError.emptyKey
        #expect((error as? KeychainError)?.rawValue == 4)
        #expect(KeychainError(rawValue: 5) == .emptyValue)
        #expect(MigrationError(rawValue: 5) == .removalFailed)
    }

    @Test("A method can be passed on as a throwing function")
    func methodReferences() throws {
        let valet = try valet()
        let write: (String, String) throws -> Void = { try valet.setString($0, forKey: $1) }
        try write("12345", "Skroob")
        let read: (String) throws -> String = valet.string(forKey:)
        let readTyped: (String) throws(KeychainError) -> Data = valet.object(forKey:)
        #expect(try read("Skroob") == "12345")
        #expect(try readTyped("Skroob") == bytes("12345"))
    }

    @Test("The methods of the valets that ask can be passed on too")
    func askingMethodReferences() throws {
        let enclave = SecureEnclaveValet.valet(with: try identifier("references"), accessControl: .userPresence)
        let single = SinglePromptSecureEnclaveValet.valet(with: try identifier("references"), accessControl: .userPresence)
        let reads: [(String, String) throws -> String] = [enclave.string(forKey:withPrompt:), single.string(forKey:withPrompt:)]
        let readTyped: (String, String) throws(KeychainError) -> Data = single.object(forKey:withPrompt:)
        let readUnprompted: (String) throws(KeychainError) -> String = enclave.string(forKey:)
        let list: (String) throws -> Set<String> = single.allKeys(userPrompt:)
        for read in reads { #expect(throws: KeychainError.itemNotFound) { try read("absent", "please") } }
        #expect(throws: KeychainError.itemNotFound) { try readTyped("absent", "please") }
        #expect(throws: KeychainError.emptyKey) { try readUnprompted("") }
        #expect(try list("please").isEmpty)
    }

    @Test("A shared group valet without an identifier is the one with nil")
    func defaultIdentifier() throws {
        let group = try sharedGroup()
        #expect(
            Valet.sharedGroupValet(with: group, accessibility: .whenUnlocked)
                === Valet.sharedGroupValet(with: group, identifier: nil, accessibility: .whenUnlocked))
        #expect(
            Valet.iCloudSharedGroupValet(with: group, accessibility: .whenUnlocked)
                === Valet.iCloudSharedGroupValet(with: group, identifier: nil, accessibility: .whenUnlocked))
    }

    @Test("Valets cross to other tasks")
    func sendable() async throws {
        let valet = try valet()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try valet.setString("12345", forKey: "Skroob") }
            try await group.waitForAll()
        }
        #expect(try valet.string(forKey: "Skroob") == "12345")
    }

    @Test("A mapping may be a trailing closure, throw, and use what it captures")
    func mappings() throws {
        let source = try valet("source")
        let destination = try valet("destination")
        try source.setString("12345", forKey: "Skroob")
        var seen: [AnyHashable] = []
        try destination.migrateObjects(from: source) { pair in
            seen.append(pair.key)
            return MigratableKeyValuePair(key: "\(pair.key)", value: pair.value)
        }
        #expect(seen == ["Skroob"])
    }
}
