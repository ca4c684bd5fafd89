// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Foundation
import Glibc
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport

/// A cluster of etcd servers with data of its own, which ends with the last reference to it.
///
/// Each server has an address of its own on the loopback interface, so no port is taken.
final class EtcdServers {
    enum Failure: Error {
        case didNotStart(log: String)
        case toolFailed([String], output: String)
    }

    private let directory: TemporaryDirectory
    private let certificates: TestCertificates?
    private let options: [String]
    private var processes: [ChildProcess?]
    /// The data of each server.
    private var dataDirectories: [String]
    let addresses: [String]
    /// The user of etcdctl and its password, once users are required.
    var user: String?

    init(count: Int = 1, options: [String] = [], certificates: TestCertificates? = nil) throws {
        directory = try TemporaryDirectory(inMemory: true)
        self.certificates = certificates
        self.options = options
        let path = directory.path
        addresses = certificates.map { [$0.address] } ?? (0..<count).map { _ in Self.newAddress() }
        dataDirectories = (0..<count).map { "\(path)/\($0)" }
        processes = Array(repeating: nil, count: count)
        try startAll()
    }

    static func newAddress() -> String {
        "127.\(UInt8.random(in: 1...254)).\(UInt8.random(in: 1...254)).\(UInt8.random(in: 1...254))"
    }

    private var scheme: String { certificates == nil ? "http" : "https" }
    private func endpoint(_ index: Int) -> String { "\(scheme)://\(addresses[index]):2379" }

    /// The location of a storage in these servers, or in some of them.
    func location(_ path: String = "/test", servers: [Int]? = nil, options: String? = nil) -> String {
        let members = (servers ?? Array(addresses.indices)).map { addresses[$0] }.joined(separator: ",")
        return "etcd://\(members)\(path)?" + (options ?? (certificates == nil ? "tls=off" : ""))
    }

    /// A storage in these servers, or in some of them.
    ///
    /// It waits long for an answer, because tests run while others use all processors, and asks for the revision only after an hour.
    func storage(
        _ path: String = "/test", servers: [Int]? = nil, options: String? = nil, _ change: (inout EtcdOptions) -> Void = { _ in }
    ) throws -> EtcdStorage {
        try EtcdStorage(location: location(path, servers: servers, options: options), options: Self.options(change))
    }

    static func options(_ change: (inout EtcdOptions) -> Void = { _ in }) -> EtcdOptions {
        var options = EtcdOptions()
        (options.attemptSeconds, options.callSeconds, options.checkSeconds) = (30, 120, 3_600)
        change(&options)
        return options
    }

    // MARK: Processes

    /// Starts a server that was killed, and waits until it takes part in the cluster.
    func start(_ index: Int = 0) throws {
        try launch(index)
        try waitUntilHealthy(index)
    }

    /// Starts all servers that are not running, and waits until they form a cluster.
    func startAll() throws {
        let indices = processes.indices.filter { processes[$0] == nil }
        for index in indices { try launch(index) }
        for index in indices { try waitUntilHealthy(index) }
    }

    /// Kills a server, like a power cut.
    func kill(_ index: Int = 0) throws {
        processes[index]?.send(signal: SIGKILL)
        _ = try processes[index]?.waitUntilEnded()
        processes[index] = nil
    }

    /// After `SIGSTOP` the connections of a server stay open, but it does not answer.
    func send(_ signal: Int32, to index: Int) { processes[index]?.send(signal: signal) }

    private func launch(_ index: Int) throws {
        let peers = addresses.enumerated().map { "n\($0)=http://\($1):2380" }.joined(separator: ",")
        var arguments = [
            "--name", "n\(index)", "--data-dir", dataDirectories[index], "--listen-client-urls", endpoint(index),
            "--advertise-client-urls", endpoint(index), "--listen-peer-urls", "http://\(addresses[index]):2380",
            "--initial-advertise-peer-urls", "http://\(addresses[index]):2380", "--initial-cluster", peers,
            "--heartbeat-interval", "50", "--election-timeout", "500", "--logger", "zap", "--log-outputs", log(index),
        ]
        if let certificates { arguments += certificates.serverOptions }
        processes[index] = try ChildProcess("etcd", arguments + options)
    }

    private func log(_ index: Int) -> String { directory.path + "/log\(index)" }

    private func waitUntilHealthy(_ index: Int) throws {
        let isHealthy = try waitUntil { try Self.run(["endpoint", "health"] + self.control(index)) != nil }
        guard isHealthy else { throw Failure.didNotStart(log: (try? String(contentsOfFile: log(index), encoding: .utf8)) ?? "") }
    }

    // MARK: etcdctl

    /// Runs etcdctl with a server, and returns its output.
    @discardableResult
    func control(_ arguments: String..., on index: Int = 0) throws -> String {
        let all = arguments + control(index)
        guard let output = try Self.run(all) else { throw Failure.toolFailed(all, output: "") }
        return output
    }

    private func control(_ index: Int) -> [String] {
        ["--endpoints", endpoint(index)] + (certificates?.controlOptions ?? []) + (user.map { ["--user", $0] } ?? [])
    }

    private static func run(_ arguments: [String]) throws -> String? {
        let result = try ChildProcess.run("etcdctl", arguments, environment: ["ETCDCTL_API": "3", "PATH": "/usr/bin:/bin"])
        return result.ending == .exited(0) ? result.output : nil
    }

    /// The index of the leader.
    func leader() throws -> Int {
        for index in addresses.indices where processes[index] != nil {
            let status = try JSONSerialization.jsonObject(with: Data(control("endpoint", "status", "-w", "json", on: index).utf8))
            let first = (status as? [[String: Any]])?.first?["Status"] as? [String: Any]
            let header = first?["header"] as? [String: Any]
            if let leader = first?["leader"] as? UInt64, leader == header?["member_id"] as? UInt64 { return index }
        }
        throw Failure.toolFailed(["endpoint", "status"], output: "no leader")
    }

    /// The revision of the cluster.
    func revision(on index: Int = 0) throws -> Int {
        let status = try JSONSerialization.jsonObject(with: Data(control("endpoint", "status", "-w", "json", on: index).utf8))
        let first = (status as? [[String: Any]])?.first?["Status"] as? [String: Any]
        return (first?["header"] as? [String: Any])?["revision"] as? Int ?? 0
    }

    /// Saves the present state of the only server; `restore` goes back to it.
    func saveSnapshot() throws { try control("snapshot", "save", directory.path + "/snapshot") }

    /// Stops the only server, and starts it with the state of the snapshot, as an operator does.
    func restore() throws {
        try kill()
        dataDirectories[0] = directory.path + "/restored"
        let peer = "http://\(addresses[0]):2380"
        let arguments = [
            "snapshot", "restore", directory.path + "/snapshot", "--data-dir", dataDirectories[0], "--name", "n0", "--initial-cluster",
            "n0=\(peer)", "--initial-advertise-peer-urls", peer,
        ]
        guard try Self.run(arguments) != nil else { throw Failure.toolFailed(arguments, output: "") }
        try start()
    }
}

/// An authority, and certificates that it has signed, made with openssl.
final class TestCertificates {
    private let directory: TemporaryDirectory
    /// The address of the server.
    let address = EtcdServers.newAddress()

    /// With `naming`, the certificate of the server names another address.
    init(naming otherAddress: String? = nil) throws {
        directory = try TemporaryDirectory(inMemory: true)
        for authority in ["ca", "other-ca"] {
            try openssl(
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=\(authority)",
                    "-keyout", path(authority + ".key"), "-out", path(authority + ".pem"),
                ])
        }
        try issue("server", by: "ca", extensions: "subjectAltName=IP:\(otherAddress ?? address)")
        try issue("client", by: "ca", extensions: "extendedKeyUsage=clientAuth")
        try issue("stranger", by: "other-ca", extensions: "extendedKeyUsage=clientAuth")
    }

    func path(_ name: String) -> String { directory.path + "/" + name }

    /// The options of a location.
    func options(authority: String = "ca", client: String? = "client") -> String {
        "ca=\(path(authority + ".pem"))" + (client.map { "&cert=\(path($0 + ".pem"))&key=\(path($0 + ".key"))" } ?? "")
    }

    var serverOptions: [String] {
        ["--cert-file", path("server.pem"), "--key-file", path("server.key"), "--client-cert-auth", "--trusted-ca-file", path("ca.pem")]
    }

    var controlOptions: [String] {
        ["--insecure-skip-tls-verify", "--cacert", path("ca.pem"), "--cert", path("client.pem"), "--key", path("client.key")]
    }

    private func issue(_ name: String, by authority: String, extensions: String) throws {
        try Data(extensions.utf8).write(to: URL(filePath: path("extensions")))
        try openssl(
            [
                "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)", "-keyout",
                path(name + ".key"),
                "-out", path("request"),
            ])
        try openssl(
            [
                "x509", "-req", "-in", path("request"), "-CA", path(authority + ".pem"), "-CAkey", path(authority + ".key"),
                "-CAcreateserial",
                "-days", "2", "-extfile", path("extensions"), "-out", path(name + ".pem"),
            ])
    }

    private func openssl(_ arguments: [String]) throws {
        let result = try ChildProcess.run("openssl", arguments, environment: ["PATH": "/usr/bin:/bin"])
        guard result.ending == .exited(0) else { throw EtcdServers.Failure.toolFailed(arguments, output: result.output) }
    }
}

/// Runs `body`, and returns its error.
func storageError(_ body: () async throws(SyncStorageError) -> Void) async -> SyncStorageError? {
    do throws(SyncStorageError) {
        try await body()
        return nil
    } catch {
        return error
    }
}
#endif
