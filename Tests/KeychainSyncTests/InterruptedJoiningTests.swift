// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import Testing

/// What both sides of an invitation learn if it does not end as planned.
@Suite("Joining that is interrupted")
struct InterruptedJoiningTests {
    /// Publishes an invitation, and ends the wait for a request.
    private func invite(_ bench: CircleBench) async throws -> SyncInvitation {
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        let waiting = Task { try await bench.one.use { try await invitation.request() } }
        try await expect("the offer is there") { try await messageCount(bench) == 1 }
        waiting.cancel()
        await expectFailure(.invitationEnded) { _ = try await waiting.value }
        return invitation
    }

    private func messageCount(_ bench: CircleBench) async throws -> Int {
        try await bench.storage.list("").count { $0.contains("/j/") }
    }

    private func join(_ bench: CircleBench, _ invitation: SyncInvitation, on storage: any SyncStorage) async throws -> SyncJoining {
        try await bench.other.use {
            try await KeychainSync.join(on: storage, code: .code(invitation.code.text), deviceName: "eagle-5")
        }
    }

    @Test("A device that cancels its request while it waits for an answer has ended it for the owner too")
    func canceledRequest() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await invite(bench)
        let joining = Task { try await join(bench, invitation, on: bench.storage) }
        try await expect("the request is there") { try await messageCount(bench) == 2 }
        joining.cancel()
        await expectFailure(.invitationEnded) { _ = try await joining.value }
        await expectFailure(.invitationEnded) { _ = try await bench.one.use { try await invitation.request() } }
        #expect(try await bench.one.use { try KeychainSync.devices() }.count == 1)
    }

    @Test("A device whose request cannot be stored ends it once the storage can be used again")
    func unsentRequest() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await invite(bench)
        let storage = FailingStorage(bench.storage, failureCount: 1)
        await expectFailure(.storage) { _ = try await join(bench, invitation, on: storage) }
        await expectFailure(.invitationEnded) { _ = try await bench.one.use { try await invitation.request() } }
    }

    @Test("An error of the storage after both numbers were shown is waited out, and the answer is sent later")
    func storageFailsAfterNumber() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        async let asking = join(bench, invitation, on: bench.storage)
        let request = try await bench.one.use { try await invitation.request() }
        let asked = try await asking
        let away = bench.storage.path + ".away"
        try FileManager.default.moveItem(atPath: bench.storage.path, toPath: away)
        async let joined = bench.other.use { try await asked.confirm() }
        await expectFailure(.storage) { try await bench.one.use { try await request.admit() } }
        try FileManager.default.moveItem(atPath: away, toPath: bench.storage.path)
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        #expect(try await joined.sharedItemCount == 1)
        #expect(try bench.other.secret("a") == "1")
    }

    @Test("A locked keychain uses no code")
    func lockedBefore() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await invite(bench)
        try bench.other.put("a", "1")
        try bench.other.keychain.set("12345")
        try bench.other.keychain.lock(.whenUnlocked)
        await expectFailure(.locked) { _ = try await join(bench, invitation, on: bench.storage) }
        #expect(try await messageCount(bench) == 1)
    }

    @Test("A keychain that is locked before the admission arrives joins once it is unlocked", arguments: [false, true])
    func lockedMeanwhile(isConfirmed: Bool) async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try bench.other.put("b", "2")
        try bench.other.keychain.set("12345")
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        async let asking = join(bench, invitation, on: bench.storage)
        let request = try await bench.one.use { try await invitation.request() }
        let asked = try await asking
        if isConfirmed {
            // The person has confirmed, and the keychain is locked while the device waits.
            let waiting = Task { try await bench.other.use { try await asked.confirm() } }
            waiting.cancel()
            await expectFailure(.invitationEnded) { _ = try await waiting.value }
        }
        try bench.other.keychain.lock(.whenUnlocked)
        await expectFailure(.locked) { _ = try await bench.other.use { try await asked.confirm() } }
        try await bench.one.use { try await request.admit() }
        await expectFailure(.locked) { _ = try await bench.other.use { try await asked.confirm() } }
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.status() } }
        try bench.other.keychain.unlock(with: "12345", autoLock: .never)
        #expect(try await bench.other.use { try await asked.confirm() }.sharedItemCount == 2)
        #expect(try bench.other.secret("a") == "1")
    }
}
