// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import KeychainSync
import Testing

@testable import KeychainSyncEtcd

/// The example of the documentation.
func synchronize(through location: String) async throws {
    let storage = try EtcdStorage(location: location)
    try await SyncAgent(on: storage).run()
}

@Suite("The location of a storage in etcd")
struct EtcdLocationTests {
    @Test("Hosts, ports, and the path")
    func address() throws {
        let location = try EtcdLocation("etcd://db1.example.com,db_2:4001,10.0.0.7,[2001:db8::1]:5000,[::1]/fleet//eu/")
        #expect(
            location.endpoints.map(\.description) == [
                "db1.example.com:2379", "db_2:4001", "10.0.0.7:2379", "[2001:db8::1]:5000", "[::1]:2379",
            ])
        #expect(location.endpoints.map(\.kind) == [.name, .name, .ipv4, .ipv6, .ipv6])
        #expect(location.path == "/fleet/eu")
        #expect(location.usesTLS)
        #expect(try EtcdLocation("etcd://a").path == "")
        #expect(try EtcdLocation("etcd://a/").path == "")
    }

    @Test("Options")
    func options() throws {
        let location = try EtcdLocation("etcd://a/p?ca=/etc/a%26b%20c.pem&cert=/c.pem&key=/k.pem&user=web&password-file=/p%2f1")
        #expect(location.authorities == "/etc/a&b c.pem")
        #expect(location.certificate == "/c.pem" && location.key == "/k.pem")
        #expect(location.user == "web" && location.passwordFile == "/p/1")
        #expect(try !EtcdLocation("etcd://a?tls=off").usesTLS)
    }

    @Test(
        "What is not well-formed is refused before anything is connected",
        arguments: [
            "", "etcd://", "etcd:///path", "http://a", "etcd://a,", "etcd://,a", "etcd://a:0", "etcd://a:65536", "etcd://a:", "etcd://a:b",
            "etcd://a b", "etcd://user@a", "etcd://::1", "etcd://[::1", "etcd://[a]", "etcd://a/b?", "etcd://a?x=1", "etcd://a?tls=on",
            "etcd://a?tls=off&ca=/a", "etcd://a?ca=a", "etcd://a?ca=", "etcd://a?cert=/a", "etcd://a?key=/a", "etcd://a?user=a",
            "etcd://a?password-file=/a", "etcd://a/%", "etcd://a/%0a", "etcd://[1:2]", "etcd://[:::::]", "etcd://[10.0.0.1]",
            "etcd://010.0.0.1", "etcd://127.1",
            "etcd://10.0.0.256", "etcd://a/" + String(repeating: "a", count: 401),
        ])
    func malformed(_ text: String) {
        #expect { try EtcdStorage(location: text) } throws: { ($0 as? SyncStorageError)?.code == .failed }
    }
}
#endif
