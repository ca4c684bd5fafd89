// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import GRPCCore
internal import GRPCNIOTransportHTTP2Posix
internal import KeychainSync
internal import KeychainSystem
internal import Synchronization

typealias EtcdClient = GRPCClient<HTTP2ClientTransport.Posix>

/// The connection to a member of the cluster, made when it is needed, and made again after it has failed.
final class EtcdConnection: Sendable {
    private struct Running {
        let client: EtcdClient
        let task: Task<Void, Never>
    }

    let endpoint: EtcdLocation.Endpoint
    private let location: EtcdLocation
    private let running = Mutex<Running?>(nil)

    init(_ endpoint: EtcdLocation.Endpoint, of location: EtcdLocation) {
        self.endpoint = endpoint
        self.location = location
    }

    deinit { running.withLock { $0?.task.cancel() } }

    /// Returns the client, and starts it if it is not running.
    ///
    /// Throws `.failed` or `.notPermitted` if the files of the certificates cannot be used.
    func client() throws(SyncStorageError) -> EtcdClient {
        if let running = running.withLock({ $0 }) { return running.client }
        let client = try makeClient()
        return running.withLock { running in
            if let running { return running.client }
            running = Running(client: client, task: Task { _ = try? await client.runConnections() })
            return client
        }
    }

    /// Closes a connection that has failed, once its calls have ended.
    ///
    /// The next call connects at once, whereas gRPC would wait, and reads the certificates again, which may have been renewed.
    func discard(_ client: EtcdClient) {
        let isCurrent = running.withLock { running in
            guard running?.client === client else { return false }
            running = nil
            return true
        }
        if isCurrent { client.beginGracefulShutdown() }
    }

    private func makeClient() throws(SyncStorageError) -> EtcdClient {
        let security = try location.usesTLS ? HTTP2ClientTransport.Posix.TransportSecurity.tls(certificates()) : .plaintext
        let config = HTTP2ClientTransport.Posix.Config.defaults { config in
            // A call is one small message that another device waits for.
            config.connection.flushCoalescing = nil
        }
        let target: any ResolvableTarget =
            switch endpoint.kind {
            case .ipv4: .ipv4(address: endpoint.host, port: endpoint.port)
            case .ipv6: .ipv6(address: endpoint.host, port: endpoint.port)
            case .name: .dns(host: endpoint.host, port: endpoint.port)
            }
        do {
            return EtcdClient(transport: try HTTP2ClientTransport.Posix(target: target, transportSecurity: security, config: config))
        } catch {
            let files = [location.authorities, location.certificate, location.key].compactMap(\.self).joined(separator: ", ")
            throw SyncStorageError(.failed, "TLS cannot be set up with \(files): \(EtcdFailure.text(of: error))")
        }
    }

    private func certificates() throws(SyncStorageError) -> HTTP2ClientTransport.Posix.TransportSecurity.TLS {
        var tls = HTTP2ClientTransport.Posix.TransportSecurity.TLS.defaults
        if let path = location.authorities {
            tls.trustRoots = .certificates([.bytes(try EtcdFile.read(path), format: .pem)])
        }
        if let certificate = location.certificate, let key = location.key {
            tls.certificateChain = [.bytes(try EtcdFile.read(certificate), format: .pem)]
            tls.privateKey = .bytes(try EtcdFile.read(key), format: .pem)
        }
        return tls
    }
}

/// The files that a location names.
enum EtcdFile {
    static func read(_ path: String) throws(SyncStorageError) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(Errno) {
            let file = try OpenFile(path, .read, followsLinks: true)
            bytes = try file.descriptor.readToEnd(byteLimit: 1 << 20)
        } catch {
            let code: SyncStorageError.Code = [.accessDenied, .notPermitted].contains(error) ? .notPermitted : .failed
            throw SyncStorageError(code, "cannot read \(path): \(error)")
        }
        guard let bytes else { throw SyncStorageError(.failed, "cannot read \(path): it is larger than 1 MiB") }
        return bytes
    }
}
#endif
