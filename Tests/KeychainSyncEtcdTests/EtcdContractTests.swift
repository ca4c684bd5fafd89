// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import Testing

@Suite("Objects in etcd", .blocking, .requiresEtcd, .serialized, .timeLimit(.minutes(10)))
struct EtcdContractTests {
    @Test("One server follows all rules of the storage contract")
    func contract() async throws {
        let servers = try EtcdServers()
        for (number, rule) in SyncStorageContract.rules.enumerated() {
            // Listings of several pages, and hints from a watch only.
            let (one, other) = (try servers.storage("/\(number)") { $0.pageLength = 7 }, try servers.storage("/\(number)"))
            let violations = await rule.violations(of: one, other: other)
            #expect(violations == [], "\(rule)")
        }
    }

    @Test("Three servers follow all rules of the storage contract, whichever is asked")
    func clusterContract() async throws {
        let servers = try EtcdServers(count: 3)
        for (number, rule) in SyncStorageContract.rules.enumerated() {
            let (one, other) = (
                try servers.storage("/\(number)", servers: [0, 1, 2]), try servers.storage("/\(number)", servers: [2, 1, 0])
            )
            let violations = await rule.violations(of: one, other: other)
            #expect(violations == [], "\(rule)")
        }
    }

    @Test("Other keys are not listed, not changed, and not in the way")
    func foreignKeys() async throws {
        let servers = try EtcdServers()
        let (storage, name) = (try servers.storage("/fleet"), SampleObjects.batch(7))
        let foreign = [
            "/fleet", "/fleet/keychain-sync-1", "/fleet/keychain-sync-1/", "/fleet/keychain-sync-1/readme",
            "/fleet/keychain-sync-10/" + name,
            "/fleet/keychain-sync-1/" + name + "/x", "/fleet2/keychain-sync-1/" + name, "/fleet/keychain-sync-1/b/" + name, "zzz",
            "/fleet/keychain-sync-1/m/" + String(repeating: "A", count: 64),
        ]
        for key in foreign { try servers.control("put", key, "foreign") }
        try servers.control("put", "/fleet/keychain-sync-1/m/\u{7f}\\xff", "foreign")
        _ = try await storage.create(name, [1])
        #expect(try await storage.list("") == [name])
        try await storage.remove(name)
        #expect(try await storage.list("") == [])
        for key in foreign { #expect(try servers.control("get", "--print-value-only", key) == "foreign\n", "\(key)") }
    }

    @Test("The keys are those that the documentation names")
    func keys() async throws {
        let servers = try EtcdServers()
        let name = SampleObjects.batch(7)
        for (path, prefix) in [("", ""), ("/", ""), ("/fleet/eu", "/fleet/eu"), ("/fleet/eu/", "/fleet/eu")] {
            _ = try await servers.storage(path).create(name, Array("content".utf8))
            #expect(try servers.control("get", "--print-value-only", "\(prefix)/keychain-sync-1/\(name)") == "content\n")
            try await servers.storage(path).remove(name)
        }
    }

    @Test("An object that is larger than the cluster accepts fails, and the storage goes on")
    func tooLarge() async throws {
        let servers = try EtcdServers()
        let storage = try servers.storage()
        for byteCount in [1_600_000, 2_200_000, 20_000_000] {
            let error = await storageError { () throws(SyncStorageError) in
                _ = try await storage.create(SampleObjects.batch(1), SampleObjects.bytes(byteCount))
            }
            #expect(error?.code == .failed, "\(byteCount) bytes: \(String(describing: error))")
        }
        #expect(try await storage.create(SampleObjects.batch(2), [1]) == .created)
    }
}
#endif
