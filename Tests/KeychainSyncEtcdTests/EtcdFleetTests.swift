// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import Testing

@Suite("Machines with a credential, through etcd", .blocking, .requiresEtcd, .serialized, .timeLimit(.minutes(10)))
struct EtcdFleetTests {
    private let servers: EtcdServers
    private let directory: TemporaryDirectory

    init() throws {
        servers = try EtcdServers()
        directory = try TemporaryDirectory(inMemory: true)
        for (user, permission) in [("root", "readwrite"), ("owner", "readwrite"), ("machine", "read")] {
            try servers.control("role", "add", user)
            try servers.control("role", "grant-permission", "--prefix", user, permission, "/test/keychain-sync-1/")
            try servers.control("user", "add", "\(user):secret of \(user)")
            try servers.control("user", "grant-role", user, user)
            try Data("secret of \(user)\n".utf8).write(to: URL(filePath: directory.path + "/" + user))
        }
        try servers.control("auth", "enable")
        servers.user = "root:secret of root"
    }

    private func storage(_ user: String) throws -> EtcdStorage {
        try servers.storage(options: "tls=off&user=\(user)&password-file=\(directory.path)/\(user)")
    }

    private func keychain(_ name: String) throws -> LocalKeychain {
        let home = directory.path + "/keychain-" + name
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
    }

    private static let attributes = ItemAttributes([.account: .string("a"), .service: .string("test"), .synchronizable: .number(1)])

    private func secret(_ keychain: LocalKeychain) throws -> Data? {
        let query = ItemQuery(itemClass: .genericPassword, attributes: Self.attributes, synchronizability: .synchronizable)
        return try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true)).first?.secret
    }

    @Test("Machines join as a user that may only read, receive changes, and leave nothing in the cluster")
    func readingUser() async throws {
        let owner = try keychain("owner")
        _ = try owner.add(
            AddRequest(
                itemClass: .genericPassword, attributes: Self.attributes, secret: Data("1".utf8),
                accessControl: AccessControl(.afterFirstUnlock)))
        let (writing, reading) = (try storage("owner"), try storage("machine"))
        let credential = try await CurrentKeychain.$bound.withValue(owner) {
            _ = try await KeychainSync.start(on: writing, deviceName: "owner")
            return try await KeychainSync.makeCredential(named: "machine", validFor: .seconds(3_600), on: writing)
        }
        // The location is for people, and has no name of a file.
        #expect(!credential.location.contains("?"))
        let before = try await reading.list("").sorted()
        let machine = try keychain("machine")
        let joined = try await CurrentKeychain.$bound.withValue(machine) {
            try await KeychainSync.join(on: reading, credential: credential)
        }
        #expect(joined.unread == nil && joined.sharedItemCount == 1)
        #expect(try secret(machine) == Data("1".utf8))
        #expect(try await reading.list("").sorted() == before)

        try owner.update(
            UpdateRequest(
                query: ItemQuery(itemClass: .genericPassword, attributes: Self.attributes, synchronizability: .synchronizable),
                secret: Data("2".utf8)))
        try await SyncAgent(owner, on: writing).runUntilQuiet()
        try await SyncAgent(machine, on: reading).runUntilQuiet()
        #expect(try secret(machine) == Data("2".utf8))
    }
}
#endif
