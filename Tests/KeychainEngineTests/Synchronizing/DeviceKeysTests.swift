// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The keys of a synchronizing device", .blocking)
struct DeviceKeysTests {
    private func withKeychain(_ body: (LocalKeychain) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory)
            let keychain = try LocalKeychain.withCheapPasscode(home: directory, holder: .processMemory)
            try keychain.startSynchronizing()
            try body(keychain)
        }
    }

    private let binding = LaneKeyBox.Binding(
        circle: CircleID(.random()), lane: .whenUnlocked, key: LaneKeyID(.random()), device: DeviceID(.random()))

    @Test("The keys that were made are those that are found, and making new ones replaces them")
    func stored() throws {
        try withKeychain { keychain in
            #expect(throws: KeychainFailure.self) { try keychain.deviceKeys() }
            let first = try keychain.makeDeviceKeys()
            #expect(try keychain.deviceKeys().publicKeys == first.publicKeys)
            let keys = try keychain.makeDeviceKeys()
            let found = try keychain.deviceKeys()
            #expect(found.publicKeys == keys.publicKeys && found.publicKeys != first.publicKeys)
            let cipher = LocalKeychain.circleCipher
            #expect(cipher.isValid(try found.sign([1, 2]), of: [1, 2], by: keys.publicKeys.signing))
            let laneKey = try cipher.makeLaneKey()
            let box = try cipher.sealBox(laneKey, binding: binding, to: keys.publicKeys.box(for: .whenUnlocked))
            let opened = try found.openBox(box, binding: binding)
            #expect(
                try cipher.laneKeyID(of: opened, circle: binding.circle, lane: .whenUnlocked)
                    == cipher.laneKeyID(of: laneKey, circle: binding.circle, lane: .whenUnlocked))
        }
    }

    @Test("A locked device signs, and opens no box of the lane that is locked")
    func locked() throws {
        try withKeychain { keychain in
            let keys = try keychain.makeDeviceKeys()
            try keychain.set("12345")
            try keychain.lock(.whenUnlocked)
            let found = try keychain.deviceKeys()
            #expect(found.publicKeys == keys.publicKeys)
            #expect(throws: Never.self) { try found.sign([1]) }
            let cipher = LocalKeychain.circleCipher
            let box = try cipher.sealBox(try cipher.makeLaneKey(), binding: binding, to: keys.publicKeys.box(for: .whenUnlocked))
            #expect { try found.openBox(box, binding: binding) } throws: { ($0 as? KeychainFailure)?.status == .interactionNotAllowed }
            #expect { try keychain.makeDeviceKeys() } throws: { ($0 as? KeychainFailure)?.status == .interactionNotAllowed }
            #expect(try keychain.deviceKeys().publicKeys == keys.publicKeys)
        }
    }

    @Test("No program finds the keys, no listing names them, and no backup counts them")
    func hidden() throws {
        try withKeychain { keychain in
            _ = try keychain.makeDeviceKeys()
            let query = ItemQuery(itemClass: .genericPassword, synchronizability: .either)
            #expect { try keychain.copyMatching(MatchRequest(query: query, limit: nil)) } throws: {
                ($0 as? KeychainFailure)?.status == .itemNotFound
            }
            #expect(try keychain.survey().accounts.isEmpty)
            #expect(try keychain.places(ofAccount: "signing", services: nil).isEmpty)
            let summary = try withTemporaryDirectory { directory in
                try keychain.createBackup(atPath: directory + "/backup", password: try Passcode(text: "password"), replacing: false)
            }
            #expect(summary.thisDeviceOnlyCount == 0 && summary.savedCount == 0 && summary.isComplete)
        }
    }

    @Test("Leaving removes the keys and keeps the items")
    func left() throws {
        try withKeychain { keychain in
            _ = try keychain.makeDeviceKeys()
            let attributes = ItemAttributes([.account: .string("a"), .service: .string("s"), .synchronizable: .number(1)])
            _ = try keychain.add(AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data([1])))
            try keychain.stopSynchronizing()
            #expect(try !keychain.isSynchronizing())
            #expect { try keychain.deviceKeys() } throws: { ($0 as? KeychainFailure)?.status == .itemNotFound }
            #expect(try keychain.survey().accounts.count == 1)
        }
    }

    @Test("One agent at a time has a keychain")
    func agentLock() throws {
        try withKeychain { keychain in
            var lock = try keychain.lockForAgent()
            #expect(lock != nil)
            #expect(try keychain.lockForAgent() == nil)
            withExtendedLifetime(lock) {}
            lock = nil
            #expect(try keychain.lockForAgent() != nil)
        }
    }
}
