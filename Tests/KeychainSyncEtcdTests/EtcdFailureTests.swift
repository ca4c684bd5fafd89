// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import Glibc
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import Testing

@Suite("Failures of etcd", .blocking, .requiresEtcd, .serialized, .timeLimit(.minutes(10)))
struct EtcdFailureTests {
    @Test("Members that are down are passed over")
    func failover() async throws {
        let servers = try EtcdServers()
        let down = EtcdServers.newAddress()
        let storage = try EtcdStorage(
            location: "etcd://\(down),\(down):1,\(servers.addresses[0]),\(down):2/test?tls=off", options: EtcdServers.options())
        #expect(try await storage.create(SampleObjects.batch(1), [1]) == .created)
        #expect(try await storage.list("").count == 1)
    }

    @Test("A member that does not answer is passed over")
    func hanging() async throws {
        let servers = try EtcdServers(count: 3)
        let storage = try servers.storage(servers: [0, 1, 2]) { $0.attemptSeconds = 1 }
        _ = try await storage.create(SampleObjects.batch(1), [1])
        servers.send(SIGSTOP, to: 0)
        for number: UInt64 in 2...5 { _ = try await storage.create(SampleObjects.batch(number), [1]) }
        #expect(try await storage.list("").count == 4 + 1)
        servers.send(SIGCONT, to: 0)
    }

    @Test("Nothing that was acknowledged is lost when the leader is killed, and killed again")
    func leaderKilled() async throws {
        let servers = try EtcdServers(count: 3)
        let storage = try servers.storage { $0.attemptSeconds = 2 }
        let writer = Task {
            var names: [String] = []
            for number: UInt64 in 1... {
                let name = SampleObjects.batch(number)
                // Also `.alreadyThere`: an attempt whose answer was lost had created it.
                if (try? await storage.create(name, [UInt8(number & 0xff)])) != nil { names.append(name) }
                if Task.isCancelled { break }
            }
            return names
        }
        for _ in 0..<3 {
            let leader = try servers.leader()
            let before = try servers.revision(on: leader)
            try servers.kill(leader)
            // The others go on without it.
            let other = (leader + 1) % 3
            #expect(waitUntil { ((try? servers.revision(on: other)) ?? 0) > before + 10 })
            try servers.start(leader)
        }
        writer.cancel()
        let names = await writer.value
        let found = try await storage.list("")
        #expect(names.count > 30 && Set(names).isSubset(of: found))
    }

    /// The errors of a call of each kind.
    private func codes(of storage: EtcdStorage) async -> [SyncStorageError.Code?] {
        [
            await storageError { () throws(SyncStorageError) in _ = try await storage.list("") },
            await storageError { () throws(SyncStorageError) in _ = try await storage.read(SampleObjects.batch(2), atMost: 9) },
            await storageError { () throws(SyncStorageError) in _ = try await storage.create(SampleObjects.batch(3), [1]) },
            await storageError { () throws(SyncStorageError) in try await storage.remove(SampleObjects.batch(4)) },
        ].map { $0?.code }
    }

    @Test("Without a majority every call fails, and once it is back every call succeeds")
    func allDown() async throws {
        let servers = try EtcdServers(count: 3)
        let (storage, patient) = (try servers.storage { $0.callSeconds = 1 }, try servers.storage())
        let name = SampleObjects.batch(1)
        _ = try await patient.create(name, [1])
        for index in 0..<2 { try servers.kill(index) }
        let unavailable = Array(repeating: SyncStorageError.Code.unavailable, count: 4)
        #expect(await codes(of: storage) == unavailable)
        try servers.kill(2)
        #expect(await codes(of: storage) == unavailable)
        // They become healthy together.
        try servers.startAll()
        #expect(await codes(of: patient) == [nil, nil, nil, nil])
        #expect(try await patient.read(name, atMost: 9) == [1])
    }

    @Test("A canceled call ends")
    func canceled() async throws {
        let servers = try EtcdServers()
        let storage = try servers.storage { $0.callSeconds = 3_600 }
        try servers.kill()
        let call = Task { await storageError { () throws(SyncStorageError) in _ = try await storage.list("") } }
        call.cancel()
        #expect(await call.value?.code == .unavailable)
    }

    @Test("A cluster whose quota is used up is full until there is space again")
    func full() async throws {
        let servers = try EtcdServers(options: ["--quota-backend-bytes", "\(16 << 20)"])
        let storage = try servers.storage()
        var names: [String] = []
        let error = await storageError { () throws(SyncStorageError) in
            for number: UInt64 in 1...40 {
                let name = SampleObjects.batch(number)
                _ = try await storage.create(name, SampleObjects.bytes(1 << 20))
                names.append(name)
            }
        }
        #expect(error?.code == .full)
        #expect(Set(names).isSubset(of: try await storage.list("")))
        #expect(
            await storageError { () throws(SyncStorageError) in _ = try await storage.create(SampleObjects.batch(41), [1]) }?.code == .full)
        for name in names { try await storage.remove(name) }
        try servers.control("compact", "\(servers.revision())")
        try servers.control("defrag")
        try servers.control("alarm", "disarm")
        #expect(try await storage.create(SampleObjects.batch(42), [1]) == .created)
    }
}
#endif
