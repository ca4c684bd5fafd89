// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// What a removal ends, by the public interface.
@Suite("A device that is removed from a circle")
struct RemovalTests {
    @Test("A device that is removed beside a running agent reads nothing that is written afterwards")
    func removalBesideAgent() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let agent = try SyncAgent(bench.one.keychain, on: bench.storage)
        let run = Task { try await agent.run() }
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        try bench.one.put("a", "2")
        try bench.one.put("b", "3")
        try await expect("the agent sends what was written") {
            try await bench.one.use { try KeychainSync.status() }.unsentCount == 0
        }
        await expectFailure(.removed) { try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try bench.other.secret("a") == "1")
        #expect(try bench.other.secret("b") == nil)
        #expect(try await bench.one.use { try KeychainSync.status() }.isAgentRunning)
        run.cancel()
        try await run.value
    }

    @Test("A removed device is gone from the list, and reads nothing that is written later")
    func remove() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        let removal = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        #expect(removal.device.name == "eagle-5" && removal.readableItemCount == 1 && removal.unsent == nil)
        try bench.one.put("a", "2")
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        await expectFailure(.removed) { try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try bench.other.secret("a") == "1")
        #expect(try await bench.other.use { try KeychainSync.status() }.isRemoved)
        await expectFailure(.notFound) {
            _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        }
    }

    @Test("A device whose owner is removed before the others know the device warns, and goes on once one of them confirms its admission")
    func voidAdmission() async throws {
        let bench = try await CircleBench()
        let (witness, third) = (
            try Machine("witness", in: bench.directory.path), try Machine("third", in: bench.directory.path)
        )
        for machine in [bench.one, bench.other] { try machine.keychain.startSynchronizing() }
        try bench.one.found("one")
        try await bench.other.join(bench.one, as: "other")
        try await witness.join(bench.one, as: "witness")
        for machine in [bench.one, bench.other, witness, bench.one] {
            try await SyncAgent(machine.keychain, on: bench.storage).runUntilQuiet()
        }
        try await third.join(bench.other, as: "third")
        for machine in [bench.other, witness, third] { try await SyncAgent(machine.keychain, on: bench.storage).runUntilQuiet() }
        let removed = try #require(try await bench.one.use { try KeychainSync.devices() }.first { $0.name == "other" })
        try await bench.one.perform(.remove(DeviceID(try #require(Identifier128(hexadecimal: removed.id)))))
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let unconfirmed = try await bench.one.use { try KeychainSync.unconfirmedDevices() }
        #expect(try await unconfirmed.map(\.id) == third.use { try KeychainSync.devices() }.filter(\.isThisDevice).map(\.id))
        try third.put("c", "3")
        await expectFailure(.unconfirmed) { try await SyncAgent(third.keychain, on: bench.storage).runUntilQuiet() }
        let agent = try SyncAgent(third.keychain, on: bench.storage)
        let run = Task { try await agent.run() }
        #expect(try await third.use { try KeychainSync.status() }.warnings.compactMap(\.failure?.code) == [.unconfirmed])
        try await SyncAgent(witness.keychain, on: bench.storage).runUntilQuiet()
        try await expect("the confirmed device sends what was written") {
            try await SyncAgent(witness.keychain, on: bench.storage).runUntilQuiet()
            return try witness.secret("c") == "3"
        }
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        #expect(try await bench.one.use { try KeychainSync.unconfirmedDevices() }.isEmpty)
        try await expect("the warning is over") { try await third.use { try KeychainSync.status() }.warnings.isEmpty }
        run.cancel()
        try await run.value
    }

    @Test("What a device has sent is read before it is removed")
    func changesOfRemovedDevice() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        try bench.other.put("a", "1")
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        let removal = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        #expect(removal.unread == nil && removal.readableItemCount == 1)
        #expect(try bench.one.secret("a") == "1")
    }

    @Test("What waits when a device is removed is sealed under the new keys")
    func changesThatWaitDuringRemoval() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        try bench.one.put("b", "1")
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        let removal = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        #expect(removal.unsent == nil)
        #expect(try await bench.one.use { try KeychainSync.status() }.unsentCount == 0)
        await expectFailure(.removed) { try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try bench.other.secret("b") == nil)
    }

    @Test("After a removal, the items are listed that still have a value which the device could read")
    func itemsToChange() async throws {
        let bench = try await CircleBench()
        for account in ["a", "b", "c"] { try bench.one.put(account, "1") }
        try bench.one.put("d", "1", .whenUnlocked)
        _ = try await bench.start()
        try await bench.join()
        try bench.one.put("unsent", "1")
        let device = try #require(try await bench.one.use { try KeychainSync.devices() }.last)
        #expect(device.twins.isEmpty)
        #expect(try await bench.one.use { try KeychainSync.removedDevices() }.isEmpty)
        _ = try await bench.one.use { try await KeychainSync.remove(device.id, on: bench.storage) }
        try bench.one.put("a", "2")
        try bench.one.delete("b")
        try bench.one.put("new", "1")
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let removed = try #require(try await bench.one.use { try KeychainSync.removedDevices() }.first)
        #expect(removed.id == device.id && removed.name == "eagle-5" && removed.lockedItemCount == 0)
        #expect(removed.exposedItems.map(\.account) == ["c", "d"])
        #expect(removed.exposedItems.map(\.service) == ["test", "test"])
        try bench.one.keychain.set("12345")
        try bench.one.keychain.lock(.whenUnlocked)
        let locked = try #require(try await bench.one.use { try KeychainSync.removedDevices() }.first)
        #expect(locked.exposedItems.map(\.account) == ["c"] && locked.lockedItemCount == 1)
    }

    @Test("Devices with the same keys in different roles are known as one machine, and are removed together")
    func twins() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        let keys = try LocalKeychain.circleCipher.makeDeviceKeys()
        // Neither of the two owners knows of the admission by the other one.
        try await bench.one.perform(.admit(keys.publicKeys, .owner))
        try await bench.other.perform(.admit(keys.publicKeys, .reader))
        try await bench.exchange()
        let twins = try await bench.one.use { try KeychainSync.devices() }.filter { !$0.twins.isEmpty }
        #expect(twins.count == 2 && twins.allSatisfy { device in device.twins == Set(twins.map(\.id)).subtracting([device.id]) })
        _ = try await bench.one.use { try await KeychainSync.remove(try #require(twins.first).id, on: bench.storage) }
        #expect(try await bench.one.use { try KeychainSync.devices() }.map(\.name) == ["spaceball-one", "eagle-5"])
    }
}
