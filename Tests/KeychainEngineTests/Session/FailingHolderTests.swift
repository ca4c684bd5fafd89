// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import Testing

@testable import KeychainTesting

@Suite("A key holder that fails")
struct FailingHolderTests {
    /// A holder whose keys cannot be loaded, as if the kernel refused.
    private struct FailingHolder: KeyHolder {
        let kind = KeyHolderKind.processMemory

        func forKeybag(_ identity: KeybagIdentity) -> any KeyHolder { self }

        func load(_ slot: KeyHolderSlot, for purpose: KeyHolderPurpose, lockEpoch: LockEpoch) throws(KeychainFailure) -> HeldSecret? {
            throw KeychainFailure(.notAvailable, "the kernel refuses", cause: .system(errno: 13))
        }

        func hold(
            _ secret: borrowing SecretBytes, in slot: KeyHolderSlot, timeoutSeconds: UInt32?, lockEpoch: LockEpoch
        ) throws(KeychainFailure) -> UInt64 {
            throw KeychainFailure(.notAvailable, "the kernel refuses")
        }

        func remove(_ slot: KeyHolderSlot) {}

        func removeOlder(_ slot: KeyHolderSlot) {}

        func discard(_ slot: KeyHolderSlot, ticket: UInt64) {}
    }

    private static let attributes: ItemAttributes = {
        var attributes = ItemAttributes()
        attributes[.account] = .string("account")
        attributes[.service] = .string("service")
        return attributes
    }()

    @Test("An item whose key cannot be loaded does not count as locked: a deletion fails and changes nothing", arguments: [false, true])
    func deletion(isSynchronizable: Bool) throws {
        let memory = try InMemoryKeychain()
        var attributes = Self.attributes
        attributes[.synchronizable] = .number(isSynchronizable ? 1 : 0)
        _ = try memory.keychain.add(AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data("secret".utf8)))
        try memory.keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .standard)
        var storage = memory.storage
        storage.holder = FailingHolder()
        let keychain = LocalKeychain(backend: InMemoryBackend(storage: storage, entitlements: memory.keychain.entitlements))

        let query = ItemQuery(itemClass: .genericPassword, attributes: Self.attributes, synchronizability: .either)
        let failure = #expect(throws: KeychainFailure.self) { try keychain.delete(DeleteRequest(query: query)) }
        #expect(failure?.status == .interactionNotAllowed && failure?.cause == .system(errno: 13))
        #expect(try memory.keychain.copyMatching(MatchRequest(query: query)).count == 1)

        // The same deletion leaves a tombstone once the keys can be loaded.
        try memory.keychain.delete(DeleteRequest(query: query))
        var tombstones = query
        tombstones.tombstones = .only
        let expected: KeychainStatus? = isSynchronizable ? nil : .itemNotFound
        var status: KeychainStatus?
        do throws(KeychainFailure) { _ = try memory.keychain.copyMatching(MatchRequest(query: tombstones)) } catch { status = error.status }
        #expect(status == expected)
    }
}
