// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import Glibc
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import Testing

/// Each test fails by its time limit if a hint is missing: the storage asks for the revision only after an hour.
@Suite("Hints of changes in etcd", .blocking, .requiresEtcd, .serialized, .timeLimit(.minutes(10)))
struct EtcdHintTests {
    @Test("A watch is resumed after the restart of its member")
    func resumed() async throws {
        let servers = try EtcdServers(count: 3)
        var hints = try servers.storage(servers: [0]).changes().makeAsyncIterator()
        let other = try servers.storage(servers: [1, 2])
        #expect(await hints.next() != nil)
        for round in 0..<2 {
            try servers.kill(0)
            _ = try await other.create(SampleObjects.batch(UInt64(2 * round + 1)), [1])
            try servers.start(0)
            #expect(await hints.next() != nil)
            _ = try await other.create(SampleObjects.batch(UInt64(2 * round + 2)), [1])
            #expect(await hints.next() != nil)
        }
    }

    @Test("A watch goes on with another member")
    func failover() async throws {
        let servers = try EtcdServers(count: 3)
        var hints = try servers.storage(servers: [0, 1]).changes().makeAsyncIterator()
        let other = try servers.storage(servers: [2])
        #expect(await hints.next() != nil)
        try servers.kill(0)
        _ = try await other.create(SampleObjects.batch(1), [1])
        #expect(await hints.next() != nil)
    }

    @Test("A member that hangs, before the watch or during it, is replaced by another one")
    func hanging() async throws {
        let servers = try EtcdServers(count: 3)
        servers.send(SIGSTOP, to: 0)
        var hints = try servers.storage(servers: [0, 1]) { $0.heartbeatSeconds = 1 }.changes().makeAsyncIterator()
        let other = try servers.storage(servers: [2])
        #expect(await hints.next() != nil)
        servers.send(SIGCONT, to: 0)
        servers.send(SIGSTOP, to: 1)
        _ = try await other.create(SampleObjects.batch(1), [1])
        #expect(await hints.next() != nil)
        servers.send(SIGCONT, to: 1)
    }

    @Test("A watch whose changes were compacted gives a hint, and goes on")
    func compacted() async throws {
        let servers = try EtcdServers(count: 3)
        var hints = try servers.storage(servers: [0]).changes().makeAsyncIterator()
        let other = try servers.storage(servers: [1, 2])
        #expect(await hints.next() != nil)
        try servers.kill(0)
        for number: UInt64 in 1...9 { _ = try await other.create(SampleObjects.batch(number), [1]) }
        try servers.control("compact", "\(servers.revision(on: 1))", on: 1)
        try servers.start(0)
        #expect(await hints.next() != nil)
        _ = try await other.create(SampleObjects.batch(10), [1])
        #expect(await hints.next() != nil)
    }

    @Test("A cluster that was restored from a snapshot is reported as such, also before it reaches its old revision")
    func restored() async throws {
        let servers = try EtcdServers()
        let storage = try servers.storage { $0.heartbeatSeconds = 0.5 }
        _ = try await storage.create(SampleObjects.batch(1), [1])
        try servers.saveSnapshot()
        for number: UInt64 in 2...9 { _ = try await storage.create(SampleObjects.batch(number), [1]) }
        var hints = storage.changes().makeAsyncIterator()
        #expect(await hints.next() != nil)
        try servers.restore()
        while let change = await hints.next(), change != .replaced {}
        #expect(try await storage.list("").count == 1)
        _ = try await storage.create(SampleObjects.batch(10), [1])
        #expect(await hints.next() != nil)
    }

    @Test("A change that no watch reports gives a hint at the next question")
    func unreported() async throws {
        let servers = try EtcdServers()
        let storage = try servers.storage {
            $0.checkSeconds = 0.01
            $0.heartbeatSeconds = 0.2
        }
        var hints = storage.changes().makeAsyncIterator()
        #expect(await hints.next() != nil)
        // The watch does not see this key; the revision of the cluster shows that something has changed.
        try servers.control("put", "/another", "value")
        #expect(await hints.next() != nil)
    }

    @Test("Without a watch, hints come nevertheless, and the first member that answers is watched")
    func blind() async throws {
        let servers = try EtcdServers()
        let storage = try servers.storage { $0.checkSeconds = 0.01 }
        try servers.kill()
        var hints = storage.changes().makeAsyncIterator()
        for _ in 0..<3 { #expect(await hints.next() != nil) }
        try servers.start()
        _ = try await storage.create(SampleObjects.batch(1), [1])
        #expect(await hints.next() != nil)
    }
}
#endif
