// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import Foundation
internal import GRPCCore
internal import KeychainSync
internal import KeychainSystem
internal import Synchronization

/// Finds out when the objects in etcd may have changed, by a watch of their keys.
///
/// A watch that breaks is resumed after the last change that it reported. That is impossible, and gives a hint, if the cluster has
/// compacted the changes meanwhile, if it is another one, or if it was restored from a snapshot, so that its revision is lower.
///
/// A watch can miss a change in rare cases (a defect of etcd before 3.5.15). So the member is asked for its revision every ten seconds, and
/// once a minute there is a hint if the revision has grown without a report. Where other programs write to the cluster, that is a hint a
/// minute. The answers also show that the member is alive.
final class EtcdHints: Sendable {
    /// What was seen of a cluster.
    private struct Position {
        let clusterID: UInt64
        /// All changes up to this revision have led to a hint.
        var revision: Int64
    }

    private struct State {
        /// Nil: a watch begins with the next change.
        var position: Position?
        /// Whether the member reports changes.
        var isWatching = false
        /// When the member is given up without another message.
        var silenceEnd = Deadline.never
        /// When a revision without a report gives the next hint.
        var checkTime = Deadline.now
    }

    private let cluster: EtcdCluster
    private let prefix: String
    private let options: EtcdOptions
    private let hint: @Sendable () -> Void
    private let state = Mutex(State())

    /// Pauses between two attempts to watch, in seconds.
    private enum Pause {
        static let first = 0.05
        static let last = 5.0
    }

    init(cluster: EtcdCluster, prefix: String, options: EtcdOptions, hint: @escaping @Sendable () -> Void) {
        self.cluster = cluster
        self.prefix = prefix
        self.options = options
        self.hint = hint
    }

    /// Reports possible changes until the task is canceled.
    func run() async {
        var pause = Pause.first
        // When a hint is due because no member reports changes.
        var blind = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
        while !Task.isCancelled {
            do throws(EtcdFailure) {
                try await cluster.withMember { client, metadata throws(EtcdFailure) in try await watch(client, metadata) }
            } catch {
                // Another attempt follows, with another member if this one is to blame.
            }
            let wasWatching = state.withLock { state in
                defer { state.isWatching = false }
                return state.isWatching
            }
            if wasWatching {
                // The next watch reports what happens meanwhile.
                pause = Pause.first
                blind = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
            } else if blind.isOver {
                hint()
                blind = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
            }
            guard (try? await Task.sleep(for: .seconds(pause))) != nil else { return }
            pause = min(2 * pause, Pause.last)
        }
    }

    /// Watches with one member; returns when another watch has to begin, and throws when the member fails.
    private func watch(_ client: EtcdClient, _ metadata: Metadata) async throws(EtcdFailure) {
        var metadata = metadata
        // A member that has lost the cluster ends the watch.
        metadata.addString("true", forKey: "hasleader")
        let request = StreamingClientRequest<EtcdWatchRequest>(metadata: metadata) { [self] writer in
            try await writer.write(begin())
            while true {
                try await Task.sleep(for: .seconds(options.heartbeatSeconds))
                var question = EtcdWatchRequest()
                question.progressRequest = EtcdWatchProgressRequest()
                try await writer.write(question)
            }
        }
        do {
            expectMessage()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [self] in
                    try await client.bidirectionalStreaming(
                        request: request, descriptor: EtcdMethod.watch.descriptor, serializer: MessageEncoder<EtcdWatchRequest>(),
                        deserializer: MessageDecoder<EtcdWatchResponse>(), options: .defaults
                    ) { [self] response in
                        for try await message in response.messages {
                            expectMessage()
                            guard try take(message) else { return }
                        }
                        throw EtcdFailure.transient(.unavailable, "the watch ended")
                    }
                }
                group.addTask { [self] in try await waitForSilence() }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch {
            throw error as? EtcdFailure ?? EtcdFailure(error)
        }
    }

    /// Sets the time until which the member has to send a message: it answers each question about its revision.
    private func expectMessage() {
        let silenceEnd = Deadline.after(nanoseconds: UInt64(2 * options.heartbeatSeconds * 1e9))
        state.withLock { $0.silenceEnd = silenceEnd }
    }

    /// Throws when the member has sent no message for too long.
    ///
    /// gRPC's keepalive pings do not do this: in grpc-swift-nio-transport 2.9 they stop for good when a connection has had no call for a moment.
    private func waitForSilence() async throws {
        while true {
            let remaining = state.withLock { $0.silenceEnd }.remainingNanoseconds
            guard remaining > 0 else { throw EtcdFailure.transient(.unavailable, "the watch does not answer") }
            try await Task.sleep(nanoseconds: remaining)
        }
    }

    /// The request that begins or resumes the watch.
    private func begin() -> EtcdWatchRequest {
        var request = EtcdWatchRequest()
        request.createRequest.key = Data(prefix.utf8)
        request.createRequest.rangeEnd = Data(etcdEnd(of: prefix))
        // A response is then no larger than a request may be.
        request.createRequest.fragment = true
        if let position = state.withLock({ $0.position }) { request.createRequest.startRevision = position.revision + 1 }
        return request
    }

    /// Takes a message of the member; returns false if another watch has to begin, without a position.
    private func take(_ message: EtcdWatchResponse) throws(EtcdFailure) -> Bool {
        let (id, revision) = (message.header.clusterID, message.header.revision)
        if message.canceled { return try takeCancellation(message) }
        let (isContinued, givesHint) = state.withLock { state in
            guard let position = state.position, position.clusterID == id else {
                // A first watch, or another cluster, whose changes before this revision are unknown.
                guard state.position == nil else {
                    state.position = nil
                    return (false, false)
                }
                state.position = Position(clusterID: id, revision: revision)
                state.isWatching = true
                return (true, true)
            }
            state.isWatching = true
            if let last = message.events.last {
                state.position?.revision = max(position.revision, last.kv.modRevision)
                return (true, true)
            }
            if message.created {
                // Otherwise the watch waits for revisions that a restored cluster reaches late, with other changes.
                guard revision >= position.revision else {
                    state.position = nil
                    return (false, false)
                }
                return (true, false)
            }
            // The answer to a question.
            guard revision > position.revision, state.checkTime.isOver else { return (true, false) }
            state.position?.revision = revision
            state.checkTime = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
            return (true, true)
        }
        if givesHint { hint() }
        return isContinued
    }

    private func takeCancellation(_ message: EtcdWatchResponse) throws(EtcdFailure) -> Bool {
        // Also if etcd has compacted the revision: the next watch begins without one, and with a hint.
        if message.compactRevision > 0 {
            state.withLock { $0.position = nil }
            return false
        }
        let reason = message.cancelReason
        if reason.contains("permission denied") { throw .refused(.notPermitted, reason) }
        if ["invalid auth token", "revision of auth store is old", "user name is empty"].contains(where: reason.contains) {
            throw .notAuthenticated
        }
        throw .transient(.unavailable, reason)
    }
}
#endif
