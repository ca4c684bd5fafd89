// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

/// Machines in no circle, and an empty folder that they share.
struct CircleBench {
    let directory: TemporaryDirectory
    let one: Machine
    let other: Machine
    let storage: FolderStorage

    init() async throws {
        directory = try TemporaryDirectory(inMemory: true)
        one = try Machine("one", in: directory.path, isSynchronizing: false)
        other = try Machine("other", in: directory.path, isSynchronizing: false)
        storage = try await FolderStorage.make(
            path: directory.path + "/shared", outside: [one.home, other.home], options: FolderOptions())
    }

    func start() async throws -> SyncStart {
        try await one.use { try await KeychainSync.start(on: storage, deviceName: "spaceball-one") }
    }

    /// Lets the second machine join, and both people confirm the number.
    @discardableResult
    func join(_ machine: Machine? = nil, as role: SyncRole = .owner, name: String = "eagle-5") async throws -> SyncJoined {
        let machine = machine ?? other
        let invitation = try await one.use { try await KeychainSync.invite(on: storage, as: role) }
        async let joining = machine.use {
            try await KeychainSync.join(on: storage, code: .code(invitation.code.text), deviceName: name)
        }
        let request = try await one.use { try await invitation.request() }
        let asked = try await joining
        #expect(request.deviceName == name)
        #expect(await request.number == asked.number)
        async let joined = machine.use { try await asked.confirm() }
        try await one.use { try await request.admit() }
        return try await joined
    }

    /// Runs the agents of both machines once, one after the other.
    func exchange() async throws {
        for machine in [one, other, one, other] { try await SyncAgent(machine.keychain, on: storage).runUntilQuiet() }
    }
}

func expectFailure(
    _ code: SyncFailure.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
    await #expect(sourceLocation: sourceLocation) {
        try await body()
    } throws: {
        ($0 as? SyncFailure)?.code == code
    }
}

/// Waits for a condition, at most as long as any machine takes.
func expect(_ text: String, _ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while try await !condition() {
        guard ContinuousClock.now < end else { return #expect(Bool(false), "\(text)") }
        await Task.yield()
    }
}
