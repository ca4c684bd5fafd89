// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// What people do with their devices, by the public interface.
@Suite("A circle of devices")
struct CircleTests {
    @Test("A second device joins with a code and a number, and both have what the other stored")
    func join() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        try bench.other.put("b", "2", .whenUnlocked)
        let start = try await bench.start()
        #expect(start.sharedItemCount == 1 && start.unsent == nil)
        #expect(start.recoveryKit.text.split(separator: "-").count == 9)
        let joined = try await bench.join()
        #expect(joined.role == .owner && joined.sharedItemCount == 2 && joined.conflictCount == 0 && joined.unread == nil)
        #expect(try bench.other.secret("a") == "1")
        try await bench.exchange()
        #expect(try bench.one.secret("b") == "2")
        let devices = try await bench.one.use { try KeychainSync.devices() }
        #expect(devices.map(\.name) == ["spaceball-one", "eagle-5"])
        #expect(devices.map(\.isThisDevice) == [true, false])
        #expect(devices.map(\.role) == [.owner, .owner])
        let status = try await bench.other.use { try KeychainSync.status() }
        #expect(status.deviceCount == 2 && status.location == bench.storage.path && status.unsentCount == 0 && !status.isAgentRunning)
        #expect(status.lastReceived?.deviceName == "spaceball-one")
    }

    @Test("An agent that runs while its keychain invites a device gives the device what it needs")
    func invitationBesideAgent() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let agent = try SyncAgent(bench.one.keychain, on: bench.storage)
        let run = Task { try await agent.run() }
        try await bench.join()
        try await expect("the first device's item arrives") {
            try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
            return try bench.other.secret("a") == "1"
        }
        run.cancel()
        try await run.value
    }

    @Test("A name that a person gives a device is shown on the others")
    func rename() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        try await bench.other.use { try await KeychainSync.rename(to: "winnebago", on: bench.storage) }
        try await bench.exchange()
        #expect(try await bench.one.use { try KeychainSync.devices() }.map(\.name) == ["spaceball-one", "winnebago"])
        await expectFailure(.invalidInput) {
            try await bench.one.use { try await KeychainSync.rename(to: "two\nlines", on: bench.storage) }
        }
    }

    @Test("A recovery kit that cannot be sent does not replace the present one")
    func unsentKit() async throws {
        let bench = try await CircleBench()
        let kit = try await bench.start().recoveryKit
        let away = bench.storage.path + ".away"
        try FileManager.default.moveItem(atPath: bench.storage.path, toPath: away)
        await expectFailure(.storage) { _ = try await bench.one.use { try await KeychainSync.makeRecoveryKit(on: bench.storage) } }
        try FileManager.default.moveItem(atPath: away, toPath: bench.storage.path)
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let recovery = try await bench.other.use {
            try await KeychainSync.recover(on: bench.storage, recoveryKit: kit, deviceName: "eagle-5")
        }
        #expect(recovery.removedDeviceCount == 1)
    }

    @Test("If another device deletes very much, nothing of it is deleted before a person has confirmed it")
    func massDeletion() async throws {
        let bench = try await CircleBench()
        for number in 1...120 { try bench.one.put("\(number)", "1") }
        _ = try await bench.start()
        try await bench.join()
        for number in 1...120 { try bench.other.delete("\(number)") }
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        await expectFailure(.deletionsWait) { try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try bench.one.secret("1") == "1" && bench.one.secret("120") == "1")
        try await bench.one.use { try await KeychainSync.acceptDeletions(on: bench.storage) }
        #expect(try bench.one.secret("1") == nil && bench.one.secret("120") == nil)
    }

    @Test("The status says what waits for a person, until the cause is gone")
    func warnings() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        func failures() async throws -> [SyncFailure.Code?] {
            try await bench.one.use { try KeychainSync.status() }.warnings.map(\.failure?.code)
        }
        for number in 1...120 { try bench.one.put("\(number)", "1") }
        try await bench.exchange()
        #expect(try await failures() == [])
        for number in 1...120 { try bench.other.delete("\(number)") }
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        for _ in 0..<2 {
            await expectFailure(.deletionsWait) { try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet() }
            #expect(try await failures() == [.deletionsWait])
        }
        try await bench.one.use { try await KeychainSync.acceptDeletions(on: bench.storage) }
        #expect(try await failures() == [])

        // The version is the fifth byte of a batch.
        let before = try FileManager.default.subpathsOfDirectory(atPath: bench.storage.path)
        try bench.other.put("a", "1")
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        let path = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: bench.storage.path)
                .first { $0.contains("/b/") && !before.contains($0) && $0.split(separator: "/").count == 6 })
        let batch = try Data(contentsOf: URL(fileURLWithPath: bench.storage.path + "/" + path))
        var newer = batch
        newer[4] += 1
        try newer.write(to: URL(fileURLWithPath: bench.storage.path + "/" + path))
        await expectFailure(.newerVersion) { try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try await failures() == [.newerVersion])
        #expect(try await bench.one.use { try KeychainSync.status() }.warnings.first?.text.hasPrefix("eagle-5 ") == true)
        try batch.write(to: URL(fileURLWithPath: bench.storage.path + "/" + path))
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        #expect(try await failures() == [] && bench.one.secret("a") == "1")
    }

    @Test("A device that joins is not asked about what was deleted before")
    func deletionsBeforeJoining() async throws {
        let bench = try await CircleBench()
        for number in 1...120 { try bench.one.put("\(number)", "1") }
        _ = try await bench.start()
        for number in 1...119 { try bench.one.delete("\(number)") }
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        try await bench.join()
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        #expect(try bench.other.secret("1") == nil && bench.other.secret("120") == "1")
    }

    @Test("The status names the devices that have sent something which has not arrived")
    func missingChanges() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        let third = try Machine("third", in: bench.directory.path, isSynchronizing: false)
        try await bench.join(third, name: "lone-starr")
        try await bench.exchange()
        #expect(try await bench.one.use { try KeychainSync.status() }.unreadDevices == [])
        let before = try Set(await bench.storage.list("").filter { $0.contains("/b/") })
        try bench.other.put("a", "1")
        for machine in [bench.other, third] { try await SyncAgent(machine.keychain, on: bench.storage).runUntilQuiet() }
        #expect(try third.secret("a") == "1")
        try third.put("b", "2")
        try await SyncAgent(third.keychain, on: bench.storage).runUntilQuiet()
        let device = try #require(try await bench.other.use { try KeychainSync.devices() }.first { $0.isThisDevice })
        for name in try await bench.storage.list("") where !before.contains(name) && name.contains("/b/\(device.id)/") {
            try await bench.storage.remove(name)
        }
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        #expect(try bench.one.secret("b") == "2" && bench.one.secret("a") == nil)
        let status = try await bench.one.use { try KeychainSync.status() }
        #expect(status.unreadDevices == ["eagle-5"] && !status.isWaitingForStatements)
    }

    @Test("A reader's writes stay on its device, and it can invite no device")
    func reader() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let joined = try await bench.join(as: .reader)
        #expect(joined.role == .reader)
        try bench.other.put("a", "2")
        try await bench.exchange()
        #expect(try bench.one.secret("a") == "1" && bench.other.secret("a") == "1")
        let conflicts = try await bench.other.use { try KeychainSync.conflicts() }
        #expect(conflicts.first?.versions.map(\.isNotShared) == [false, true])
        await expectFailure(.notOwner) { _ = try await bench.other.use { try await KeychainSync.invite(on: bench.storage) } }
    }

    @Test("Of two values that devices have written without knowing of each other, a person keeps one for all", arguments: [false, true])
    func conflict(keepsVisible: Bool) async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        try await bench.join()
        try bench.other.put("a", "2")
        try bench.one.put("a", "1")
        try await bench.exchange()
        let conflicts = try await bench.one.use { try KeychainSync.conflicts() }
        let conflict = try #require(conflicts.first)
        #expect(conflicts.count == 1 && conflict.versions.map(\.isVisible) == [true, false])
        #expect(Set(conflict.versions.map(\.deviceName)) == ["spaceball-one", "eagle-5"])
        #expect(Set(conflict.versions.map { $0.content?.secret }) == [Data("1".utf8), Data("2".utf8)])
        #expect(conflict.versions.allSatisfy { $0.content?.item.service == "test" && $0.content?.item.account == "a" })
        let kept = conflict.versions[keepsVisible ? 0 : 1]
        try await bench.one.use { try await KeychainSync.keep(kept, of: conflict, on: bench.storage) }
        try await bench.exchange()
        for machine in [bench.one, bench.other] {
            #expect(try machine.secret("a").map { Data($0.utf8) } == kept.content?.secret)
            #expect(try await machine.use { try KeychainSync.conflicts() }.isEmpty)
        }
        await expectFailure(.notFound) {
            try await bench.one.use { try await KeychainSync.keep(kept, of: conflict, on: bench.storage) }
        }
    }

    @Test("When all devices are lost, the recovery kit brings everything to a new one, and no old device or kit can be used")
    func recover() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        try bench.one.put("b", "2", .whenUnlocked)
        let start = try await bench.start()
        let found = try Machine("found", in: bench.directory.path, isSynchronizing: false)
        try await bench.join(found, name: "lone-starr")
        let recovery = try await bench.other.use {
            try await KeychainSync.recover(
                on: bench.storage, recoveryKit: .recoveryKit(start.recoveryKit.text.lowercased()), deviceName: "eagle-5")
        }
        #expect(recovery.sharedItemCount == 2 && recovery.removedDeviceCount == 2 && recovery.unsent == nil)
        #expect(recovery.newestChange?.deviceName == "lone-starr")
        #expect(try bench.other.secret("a") == "1" && bench.other.secret("b") == "2")
        #expect(try await bench.other.use { try KeychainSync.devices() }.map(\.name) == ["eagle-5"])
        try bench.other.put("a", "3")
        try await SyncAgent(bench.other.keychain, on: bench.storage).runUntilQuiet()
        for machine in [bench.one, found] {
            await expectFailure(.removed) { try await SyncAgent(machine.keychain, on: bench.storage).runUntilQuiet() }
            #expect(try machine.secret("a") == "1")
        }
        let third = try Machine("third", in: bench.directory.path, isSynchronizing: false)
        await expectFailure(.noCircle) {
            _ = try await third.use {
                try await KeychainSync.recover(on: bench.storage, recoveryKit: start.recoveryKit, deviceName: "third")
            }
        }
        #expect(try third.secret("a") == nil)
        let again = try await third.use {
            try await KeychainSync.recover(on: bench.storage, recoveryKit: recovery.recoveryKit, deviceName: "third")
        }
        #expect(again.sharedItemCount == 2)
        #expect(try third.secret("a") == "3")
    }

    @Test("A recovery undoes very many deletions, unless a person accepts them", arguments: [false, true])
    func recoveredDeletions(areAccepted: Bool) async throws {
        let bench = try await CircleBench()
        for number in 1...120 { try bench.one.put("\(number)", "1") }
        let start = try await bench.start()
        for number in 1...120 { try bench.one.delete("\(number)") }
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
        let recovery = try await bench.other.use {
            try await KeychainSync.recover(
                on: bench.storage, recoveryKit: start.recoveryKit, deviceName: "eagle-5", acceptsDeletions: areAccepted)
        }
        #expect(recovery.areDeletionsUndone == !areAccepted && recovery.sharedItemCount == (areAccepted ? 0 : 120))
        #expect(try bench.other.secret("1") == (areAccepted ? nil : "1"))
    }

    @Test("A recovery kit that was replaced is of no use")
    func replacedKit() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        let start = try await bench.start()
        let kit = try await bench.one.use { try await KeychainSync.makeRecoveryKit(on: bench.storage) }
        await expectFailure(.noCircle) {
            _ = try await bench.other.use {
                try await KeychainSync.recover(on: bench.storage, recoveryKit: start.recoveryKit, deviceName: "eagle-5")
            }
        }
        _ = try await bench.other.use { try await KeychainSync.recover(on: bench.storage, recoveryKit: kit, deviceName: "eagle-5") }
        #expect(try bench.other.secret("a") == "1")
    }

    @Test("A device that leaves keeps its items, and can join again")
    func leave() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let agent = try SyncAgent(bench.other.keychain, on: bench.storage)
        await expectFailure(.agentRunning) { _ = try await bench.other.use { try KeychainSync.leave() } }
        withExtendedLifetime(agent) {}
        _ = consume agent
        #expect(try await bench.other.use { try KeychainSync.leave() } == 1)
        #expect(try bench.other.secret("a") == "1")
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.status() } }
        let joined = try await bench.join()
        #expect(joined.sharedItemCount == 1 && joined.conflictCount == 0)
    }

    @Test("A device uses a folder that was moved, but not while an agent runs")
    func move() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        try await bench.join()
        let path = bench.storage.path + ".moved"
        let agent = try SyncAgent(bench.one.keychain, on: bench.storage)
        try FileManager.default.moveItem(atPath: bench.storage.path, toPath: path)
        let moved = FolderStorage(path: path)
        await expectFailure(.agentRunning) { try await bench.one.use { try await KeychainSync.move(to: moved) } }
        #expect(try await bench.one.use { try KeychainSync.status() }.location == bench.storage.path)
        withExtendedLifetime(agent) {}
        _ = consume agent
        try await bench.one.use { try await KeychainSync.move(to: moved) }
        #expect(try await bench.one.use { try KeychainSync.status() }.location == path)
        try bench.one.put("a", "2")
        for machine in [bench.one, bench.other] { try await SyncAgent(machine.keychain, on: moved).runUntilQuiet() }
        #expect(try bench.other.secret("a") == "2")
    }

    @Test("A device does not use the folder of another circle, and nothing of it is changed")
    func moveToOtherCircle() async throws {
        let bench = try await CircleBench()
        try bench.one.put("a", "1")
        _ = try await bench.start()
        let folder = try await FolderStorage.make(
            path: bench.directory.path + "/elsewhere", outside: [bench.one.home, bench.other.home], options: FolderOptions())
        _ = try await bench.other.use { try await KeychainSync.start(on: folder, deviceName: "eagle-5") }
        let before = try await folder.list("")
        await expectFailure(.noCircle) { try await bench.one.use { try await KeychainSync.move(to: folder) } }
        #expect(try await bench.one.use { try KeychainSync.status() }.location == bench.storage.path)
        #expect(try await folder.list("") == before)
        try await SyncAgent(bench.one.keychain, on: bench.storage).runUntilQuiet()
    }

    @Test("A circle is founded once in a storage, and once on a device")
    func secondStart() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        await expectFailure(.alreadyStarted) { _ = try await bench.start() }
        await expectFailure(.circleExists) {
            _ = try await bench.other.use { try await KeychainSync.start(on: bench.storage, deviceName: "eagle-5") }
        }
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.devices() } }
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.leave() } }
    }

    @Test("A code is for one request, a mistyped one is refused at once, and a refused device does not join")
    func codes() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        await expectFailure(.invalidInput) { _ = try SyncSecret.code("4WQ7-HX2M") }
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        async let joining = bench.other.use {
            try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "eagle-5")
        }
        let request = try await bench.one.use { try await invitation.request() }
        let asked = try await joining
        let third = try Machine("third", in: bench.directory.path, isSynchronizing: false)
        await expectFailure(.codeUsed) {
            _ = try await third.use { try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "third") }
        }
        await request.refuse()
        await expectFailure(.invitationEnded) { try await bench.one.use { try await request.admit() } }
        await asked.refuse()
        await expectFailure(.notStarted) { _ = try await bench.other.use { try KeychainSync.status() } }
        #expect(try await bench.one.use { try KeychainSync.devices() }.count == 1)
    }

    @Test("If the person at the device that joins refuses, it is not admitted, and its code is known as used")
    func refusingJoiner() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        async let joining = bench.other.use {
            try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "eagle-5")
        }
        let request = try await bench.one.use { try await invitation.request() }
        try await joining.refuse()
        await expectFailure(.invitationEnded) { try await bench.one.use { try await request.admit() } }
        #expect(try await bench.one.use { try KeychainSync.devices() }.count == 1)
        await expectFailure(.codeUsed) {
            _ = try await bench.other.use { try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "eagle-5") }
        }
    }

    @Test("A code with which a device has joined is known as used")
    func usedCode() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage) }
        async let joining = bench.other.use {
            try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "eagle-5")
        }
        let request = try await bench.one.use { try await invitation.request() }
        let asked = try await joining
        async let joined = bench.other.use { try await asked.confirm() }
        try await bench.one.use { try await request.admit() }
        _ = try await joined
        let third = try Machine("third", in: bench.directory.path, isSynchronizing: false)
        await expectFailure(.codeUsed) {
            _ = try await third.use { try await KeychainSync.join(on: bench.storage, code: invitation.code, deviceName: "third") }
        }
    }

    @Test("An invitation into a folder that is gone ends at once")
    func invitationWithoutFolder() async throws {
        let bench = try await CircleBench()
        _ = try await bench.start()
        let invitation = try await bench.one.use { try await KeychainSync.invite(on: bench.storage, as: .owner) }
        try FileManager.default.removeItem(atPath: bench.storage.path)
        await expectFailure(.storage) { _ = try await bench.one.use { try await invitation.request() } }
    }

    @Test("Neither descriptions nor dumps show a code or a kit")
    func descriptions() async throws {
        let bench = try await CircleBench()
        let start = try await bench.start()
        let text = start.recoveryKit.text
        var dumped = ""
        dump(start, to: &dumped)
        for shown in [dumped, "\(start)", String(reflecting: start)] {
            #expect(!shown.contains(text) && !shown.contains(text.prefix(9)))
        }
    }
}
