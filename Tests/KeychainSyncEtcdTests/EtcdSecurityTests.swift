// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import Foundation
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import Testing

@Suite("Users and certificates of etcd", .blocking, .requiresEtcd, .serialized, .timeLimit(.minutes(10)))
struct EtcdSecurityTests {
    private func error(of storage: EtcdStorage) async -> SyncStorageError? {
        await storageError { () throws(SyncStorageError) in _ = try await storage.list("") }
    }

    @Test("A member with TLS accepts only its clients, and is accepted only with a certificate of its authority")
    func certificates() async throws {
        let certificates = try TestCertificates()
        let servers = try EtcdServers(certificates: certificates)
        let name = SampleObjects.batch(1)
        #expect(try await servers.storage(options: certificates.options()).create(name, [1]) == .created)
        #expect(try await servers.storage(options: certificates.options()).read(name, atMost: 9) == [1])

        for client in ["stranger", nil] {
            #expect(try await error(of: servers.storage(options: certificates.options(client: client)))?.code == .notPermitted)
        }
        let own = "cert=\(certificates.path("client.pem"))&key=\(certificates.path("client.key"))"
        for options in [certificates.options(authority: "other-ca"), own] {
            #expect(try await error(of: servers.storage(options: options))?.code == .failed, "\(options)")
        }
        // A member that is restarted also closes connections.
        #expect(try await error(of: servers.storage(options: "tls=off") { $0.callSeconds = 1 })?.code == .unavailable)
    }

    @Test("The certificate of a member must name the host in the location")
    func otherName() async throws {
        let certificates = try TestCertificates(naming: "127.1.1.1")
        let servers = try EtcdServers(certificates: certificates)
        #expect(try await error(of: servers.storage(options: certificates.options()))?.code == .failed)
    }

    @Test("Files that are missing or are no certificates fail at once")
    func files() async throws {
        let certificates = try TestCertificates()
        let wrong = [
            "ca=/nowhere", "ca=/etc/passwd", "ca=\(certificates.path("ca.pem"))&cert=\(certificates.path("client.pem"))&key=/nowhere",
            certificates.options().replacingOccurrences(of: "client.key", with: "client.pem"),
        ]
        for options in wrong {
            #expect(try await error(of: EtcdStorage(location: "etcd://127.0.0.1:1/test?\(options)"))?.code == .failed, "\(options)")
        }
    }

    @Test("A user has the permissions of its role, and is authenticated again when etcd has forgotten it")
    func users() async throws {
        let servers = try EtcdServers()
        let passwords = try TemporaryDirectory()
        for (user, permission) in [("root", "readwrite"), ("writer", "readwrite"), ("reader", "read")] {
            try servers.control("role", "add", user)
            try servers.control("role", "grant-permission", "--prefix", user, permission, "/test/keychain-sync-1/")
            try servers.control("user", "add", "\(user):secret of \(user)")
            try servers.control("user", "grant-role", user, user)
            try Data("secret of \(user)\n".utf8).write(to: URL(filePath: passwords.path + "/" + user))
        }
        try servers.control("auth", "enable")
        servers.user = "root:secret of root"
        func storage(_ user: String, password: String? = nil) throws -> EtcdStorage {
            try servers.storage(options: "tls=off&user=\(user)&password-file=\(passwords.path)/\(password ?? user)")
        }
        let (writer, reader, name) = (try storage("writer"), try storage("reader"), SampleObjects.batch(1))
        var hints = reader.changes().makeAsyncIterator()
        #expect(await hints.next() != nil)
        for round: UInt64 in 1...2 {
            #expect(try await writer.create(SampleObjects.batch(round), [1]) == .created)
            #expect(await hints.next() != nil)
            #expect(try await reader.list("").count == Int(round))
            #expect(await storageError { () throws(SyncStorageError) in _ = try await reader.create(name, [1]) }?.code == .notPermitted)
            #expect(await storageError { () throws(SyncStorageError) in try await reader.remove(name) }?.code == .notPermitted)
            // Tokens are in memory.
            try servers.kill()
            try servers.start()
        }
        #expect(try await error(of: servers.storage())?.code == .notPermitted)
        #expect(try await error(of: storage("reader", password: "writer"))?.code == .notPermitted)
        #expect(try await error(of: storage("stranger", password: "writer"))?.code == .notPermitted)
        #expect(try await error(of: storage("reader", password: "missing"))?.code == .failed)
    }
}
#endif
