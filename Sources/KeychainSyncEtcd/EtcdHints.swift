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
/// once a minute there is a hint if the revision has grown. The answers also show that the member is alive.
final class EtcdHints: Sendable {
    /// What was seen of a cluster.
    private struct Position {
        let clusterID: UInt64
        /// The last revision that was seen.
        var revision: Int64
        /// A watch is resumed with this revision.
        ///
        /// That of the last event, because more events of it may follow in another message.
        var nextRevision: Int64
        /// The revision of the last hint that leads to a listing.
        var listedRevision: Int64
    }

    private struct State {
        /// Nil: a watch begins with the next change.
        var position: Position?
        /// Whether another cluster has the place of the one before.
        var isReplaced = false
        /// The revision that was seen before a member was found to be behind it; nil once that is explained.
        var lostRevision: Int64?
        /// When the member is given up without another message.
        var silenceEnd = Deadline.never
        /// When a revision without a report gives the next hint.
        var checkTime = Deadline.now
    }

    private let cluster: EtcdCluster
    /// What the keys of all objects begin with.
    private let root: String
    private let options: EtcdOptions
    private let report: @Sendable (SyncStorageChange) -> Void
    private let state = Mutex(State())

    /// Pauses between two attempts to watch, in seconds.
    private enum Pause {
        static let first = 0.05
        static let last = 5.0
    }

    init(cluster: EtcdCluster, root: String, options: EtcdOptions, report: @escaping @Sendable (SyncStorageChange) -> Void) {
        self.cluster = cluster
        self.root = root
        self.options = options
        self.report = report
    }

    /// Reports possible changes until the task is canceled.
    func run() async {
        var pause = Pause.first
        var hintTime = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
        while !Task.isCancelled {
            let before = state.withLock { $0.position?.revision }
            let stable = Deadline.after(nanoseconds: UInt64(Pause.last * 1e9))
            do throws(EtcdFailure) {
                try await cluster.withMember { client, metadata throws(EtcdFailure) in try await watch(client, metadata) }
            } catch {
                // Another attempt follows, with another member if this one is to blame. What it could not send at once, it cannot send again.
                if case .tooLarge = error { state.withLock { if $0.position?.revision == before { $0.position = nil } } }
            }
            // A watch that ends at once, again and again, may report nothing.
            if hintTime.isOver {
                report(.unknown)
                hintTime = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
            }
            if stable.isOver { pause = Pause.first }
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
        request.createRequest.key = Data(root.utf8)
        request.createRequest.rangeEnd = Data(etcdEnd(of: root))
        // A response is then no larger than a request may be.
        request.createRequest.fragment = true
        if let position = state.withLock({ $0.position }) { request.createRequest.startRevision = position.nextRevision }
        return request
    }

    /// Takes a message of the member; returns false if another watch has to begin, without a position.
    private func take(_ message: EtcdWatchResponse) throws(EtcdFailure) -> Bool {
        let (id, revision) = (message.header.clusterID, message.header.revision)
        if message.canceled { return try takeCancellation(message) }
        // The next watch begins after one of them.
        guard ([revision] + message.events.map(\.kv.modRevision)).allSatisfy((0..<Int64.max).contains) else {
            throw .transient(.unavailable, "the watch has an invalid revision")
        }
        let (isContinued, change) = state.withLock { state -> (Bool, SyncStorageChange?) in
            guard let position = state.position, position.clusterID == id else {
                // A first watch, or another cluster, whose changes before this revision are unknown.
                guard state.position == nil else {
                    state.position = nil
                    state.isReplaced = true
                    return (false, nil)
                }
                state.position = Position(clusterID: id, revision: revision, nextRevision: revision + 1, listedRevision: revision)
                defer { state.isReplaced = false }
                return (true, state.isReplaced ? .replaced : .unknown)
            }
            if let last = message.events.last {
                state.position?.revision = max(position.revision, last.kv.modRevision)
                state.position?.nextRevision = max(position.nextRevision, last.kv.modRevision)
                return (true, Self.change(message.events, root))
            }
            if message.created {
                // Otherwise the watch waits for revisions that a restored cluster reaches late, with other changes.
                guard revision >= position.revision else {
                    state.position = nil
                    state.lostRevision = position.revision
                    return (false, nil)
                }
                return (true, nil)
            }
            // The answer to a question. A member that was only slow has caught up by now; a cluster that was restored has not.
            if let lostRevision = state.lostRevision {
                state.lostRevision = nil
                if revision < lostRevision { return (true, .replaced) }
            }
            guard revision > position.listedRevision, state.checkTime.isOver else { return (true, nil) }
            state.position?.revision = max(position.revision, revision)
            state.position?.nextRevision = max(position.nextRevision, revision + 1)
            state.position?.listedRevision = revision
            state.checkTime = Deadline.after(nanoseconds: UInt64(options.checkSeconds * 1e9))
            return (true, .unknown)
        }
        if let change { report(change) }
        return isContinued
    }

    private static func change(_ events: [EtcdEvent], _ root: String) -> SyncStorageChange {
        var names: [String] = []
        for event in events {
            // A deletion resets the version.
            guard event.kv.version > 0 else { return .unknown }
            guard let key = String(validating: event.kv.key, as: UTF8.self), key.hasPrefix(root) else { continue }
            names.append(String(key.dropFirst(root.count)))
        }
        return .created(names)
    }

    private func takeCancellation(_ message: EtcdWatchResponse) throws(EtcdFailure) -> Bool {
        // Also if etcd has compacted the revision: the next watch begins without one, and with a hint.
        if message.compactRevision > 0 {
            state.withLock { $0.position = nil }
            return false
        }
        let reason = EtcdFailure.printable(message.cancelReason)
        if reason.contains("permission denied") { throw .refused(.notPermitted, reason) }
        if ["invalid auth token", "revision of auth store is old", "user name is empty"].contains(where: reason.contains) {
            throw .notAuthenticated
        }
        throw .transient(.unavailable, reason)
    }
}
#endif
