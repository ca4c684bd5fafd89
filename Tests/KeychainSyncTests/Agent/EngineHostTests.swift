// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainSync
import KeychainTestSupport
import SyncCore
import Testing

@testable import KeychainSync

@Suite("The steps of an agent", .blocking)
struct EngineHostTests {
    /// Carries out what a host asks for, as an agent does, on objects in memory.
    private struct Storage {
        private(set) var objects: [String: [UInt8]] = [:]
        private(set) var createdBatches: [String] = []

        /// Performs effects and those that follow from them.
        ///
        /// It is recorded later which batches were created, as while no other object waits for that.
        mutating func perform(_ effects: [SyncEffect], of host: EngineHost) async throws {
            var effects = effects
            while !effects.isEmpty {
                switch effects.removeFirst() {
                case .list(let folder):
                    let names = objects.keys.filter { ObjectName($0)?.folder == folder }
                    effects += try await host.step([.listed(folder, names)])
                case .read(let name, _): effects += try await host.step([.read(name, objects[name])])
                case .create(let name, let bytes):
                    objects[name] = bytes
                    if ObjectName(name)?.folder == .batches { createdBatches.append(name) }
                    if await !host.delay([.created(name)]) { effects += try await host.step([.created(name)]) }
                case .remove(let name): objects[name] = nil
                case .writeCheckpoint: effects += try await host.writeCheckpoint()
                case .wake, .alarm: break
                }
            }
        }
    }

    @Test("A round that begins before it is recorded that a batch was created does not create it again")
    func roundAfterCreation() async throws {
        try await withTemporaryDirectory { directory in
            let machine = try Machine("one", in: directory)
            try machine.found("one")
            let host = EngineHost(machine.keychain, clock: SystemClock())
            var storage = Storage()
            try await storage.perform(try await host.step([.wake]), of: host)
            try machine.put("Skroob", "12345")
            try await storage.perform(try await host.step([.itemsChanged]), of: host)
            #expect(await host.hasUnrecordedCreations)
            try await storage.perform(try await host.step([.wake]), of: host)
            #expect(await !host.hasUnrecordedCreations)
            try machine.put("Skroob", "54321")
            try await storage.perform(try await host.step([.itemsChanged]), of: host)
            #expect(storage.createdBatches.count > 1)
            #expect(Set(storage.createdBatches).count == storage.createdBatches.count)
        }
    }
}
