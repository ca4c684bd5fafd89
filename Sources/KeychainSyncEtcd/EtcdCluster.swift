// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import GRPCCore
internal import KeychainSync
internal import KeychainSystem
internal import SwiftProtobuf
internal import Synchronization

/// The members of a cluster: performs each call with one that answers, as the user of the location.
final class EtcdCluster: Sendable {
    private struct State {
        /// The index of the member that is asked first.
        var preferred = 0
        var token: String?
    }

    private let location: EtcdLocation
    private let options: EtcdOptions
    private let connections: [EtcdConnection]
    private let state = Mutex(State())

    init(_ location: EtcdLocation, _ options: EtcdOptions) {
        self.location = location
        self.options = options
        connections = location.endpoints.map { EtcdConnection($0, of: location) }
    }

    /// Performs a call that may be repeated; `action` says what it is for, as a verb with its object.
    ///
    /// `shrink` changes a request whose response is too large for a message to one with a smaller response; it returns false if that is
    /// impossible.
    ///
    /// Throws `.unavailable` if no member has answered at the deadline. The call may have been performed nevertheless. Throws another
    /// code at once if certificates prevent a connection to every member.
    func call<Request, Response>(
        _ method: EtcdMethod<Request, Response>, _ request: inout Request, _ action: String,
        shrink: (inout Request) -> Bool = { _ in false }
    ) async throws(SyncStorageError) -> Response {
        let deadline = Deadline.after(seconds: options.callSeconds)
        var pause = 0.05
        while true {
            var problem = (SyncStorageError.Code.notPermitted, "the user is not authenticated")
            var mayRecover = false
            // Each member once, and the first again, with a new token.
            for _ in 0...connections.count {
                let message = request
                let seconds = min(options.attemptSeconds, Double(deadline.remainingNanoseconds) / 1e9)
                do throws(EtcdFailure) {
                    return try await withMember { client, metadata throws(EtcdFailure) in
                        try await Self.perform(method, message, client, metadata, seconds: seconds)
                    }
                } catch {
                    switch error {
                    case .transient(let code, let reason):
                        problem = (code, reason)
                        mayRecover = mayRecover || code == .unavailable
                    case .tooLarge(let reason, let isCertain):
                        let isSmaller = shrink(&request)
                        guard isSmaller || !isCertain else { throw SyncStorageError(.failed, "etcd did not \(action): \(reason)") }
                        problem = (.unavailable, reason)
                        mayRecover = true
                    case .notAuthenticated where location.user != nil: break
                    case .notAuthenticated:
                        throw SyncStorageError(.notPermitted, "etcd did not \(action): it requires a user or a client certificate")
                    case .refused(let code, let reason): throw SyncStorageError(code, "etcd did not \(action): \(reason)")
                    case .notSent(let error): throw error
                    }
                }
                guard !deadline.isOver, !Task.isCancelled else { break }
            }
            guard mayRecover, Double(deadline.remainingNanoseconds) / 1e9 > pause, (try? await Task.sleep(for: .seconds(pause))) != nil
            else {
                throw SyncStorageError(problem.0, "no member of the etcd cluster was able to \(action): \(problem.1)")
            }
            pause = min(2 * pause, 1)
        }
    }

    /// Runs `body` with the preferred member, and prefers the next one if that fails.
    ///
    /// `body` gets what identifies the user.
    func withMember<Result>(
        _ body: (EtcdClient, Metadata) async throws(EtcdFailure) -> Result
    ) async throws(EtcdFailure) -> Result {
        let index = state.withLock { $0.preferred }
        let connection = connections[index]
        let client: EtcdClient
        do throws(SyncStorageError) { client = try connection.client() } catch { throw .notSent(error) }
        do throws(EtcdFailure) {
            return try await body(client, try await metadata(client))
        } catch {
            // The end of a canceled task is no failure of the member.
            guard !Task.isCancelled else { throw error }
            switch error {
            case .transient(let code, let reason):
                leave(index, client)
                throw .transient(code, "\(connection.endpoint): \(reason)")
            case .tooLarge(_, isCertain: false): leave(index, client)
            case .notAuthenticated: state.withLock { $0.token = nil }
            case .tooLarge, .refused, .notSent: break
            }
            throw error
        }
    }

    /// Closes the connection to a member, and prefers the next one.
    private func leave(_ index: Int, _ client: EtcdClient) {
        connections[index].discard(client)
        state.withLock { if $0.preferred == index { $0.preferred = (index + 1) % connections.count } }
    }

    /// What identifies the user to etcd, without a client certificate: a token, which etcd forgets after a few minutes without a call.
    private func metadata(_ client: EtcdClient) async throws(EtcdFailure) -> Metadata {
        guard let user = location.user, let path = location.passwordFile else { return [:] }
        if let token = state.withLock({ $0.token }) { return ["token": .string(token)] }
        var request = EtcdAuthenticateRequest()
        request.name = user
        do throws(SyncStorageError) {
            request.password = String(decoding: try EtcdFile.read(path), as: UTF8.self)
        } catch {
            throw .notSent(error)
        }
        if request.password.hasSuffix("\n") { request.password.removeLast() }
        let token = try await Self.perform(.authenticate, request, client, [:], seconds: options.attemptSeconds).token
        state.withLock { $0.token = token }
        return ["token": .string(token)]
    }

    private static func perform<Request, Response>(
        _ method: EtcdMethod<Request, Response>, _ request: Request, _ client: EtcdClient, _ metadata: Metadata, seconds: Double
    ) async throws(EtcdFailure) -> Response {
        var options = CallOptions.defaults
        options.timeout = .seconds(seconds)
        do {
            return try await client.unary(
                request: ClientRequest(message: request, metadata: metadata), descriptor: method.descriptor,
                serializer: MessageEncoder<Request>(), deserializer: MessageDecoder<Response>(), options: options
            ) { try $0.message }
        } catch {
            throw EtcdFailure(error)
        }
    }
}
#endif
