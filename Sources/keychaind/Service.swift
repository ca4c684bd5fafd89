// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Accepts the connections of programs, and ends when it is told to.
final class Service: Sendable {
    /// The most connections of one user that wait for a request; the one that has waited longest is ended for another one.
    static let largestIdleCount = 64
    /// The most connections of one user in all, each of which has a thread.
    static let largestConnectionCount = 128
    static let largestObservationCount = 48

    private let services: SharedServices
    private let listener: PacketListener
    private let stop: WakeupDescriptor
    /// By user; a connection counts until its thread has ended.
    ///
    /// Those of users of whom it is not known whether they have an account count together, with the user nil: looking for an account may take time.
    private let connections = Mutex<[UInt32?: [ServedConnection]]>([:])
    /// By user, of those with an account.
    private let limits = Mutex<[UInt32: UserLimits]>([:])

    init(_ services: SharedServices, _ listener: consuming PacketListener) throws(Errno) {
        self.services = services
        self.listener = listener
        stop = try WakeupDescriptor()
    }

    /// Makes `run` return.
    func end() { stop.set() }

    /// Serves connections until `end` is called, and then finishes the requests that were received.
    func run() {
        var nextRelease = Deadline.never
        var roundsWithoutConnection = 0
        while true {
            do throws(Errno) {
                guard let socket = try listener.accept(unless: stop.descriptor, until: nextRelease) else { break }
                serve(socket)
                roundsWithoutConnection = 0
                if nextRelease == .never { nextRelease = .after(seconds: Self.releaseIntervalSeconds) }
            } catch .timedOut {
                // Below, also if there is always another connection.
            } catch {
                // For example a lack of descriptors, which is over when other connections have ended.
                MonotonicClock.sleep(nanoseconds: Self.pauseNanoseconds)
            }
            guard nextRelease.isOver else { continue }
            services.keychains?.releaseUnusedMemory()
            if connections.withLock({ $0.isEmpty }) { roundsWithoutConnection += 1 }
            // The first round finds that a keychain was used before, and the second one that it was not used since.
            nextRelease = roundsWithoutConnection < 2 ? .after(seconds: Self.releaseIntervalSeconds) : .never
        }
        finish()
    }

    /// How often the memory of unused keychains is returned to the system.
    private static let releaseIntervalSeconds: UInt32 = 10

    private static let pauseNanoseconds: UInt64 = 50_000_000

    private func serve(_ socket: consuming PacketSocket) {
        let connection: ServedConnection
        do throws(Errno) {
            connection = try ServedConnection(socket)
        } catch {
            return
        }
        let user = services.accounts.isKnown(connection.userID) ? connection.userID : nil
        guard admit(connection, of: user) else { return connection.refuse(Self.tooManyConnections(of: connection.userID)) }
        let isStarted = BackgroundThread.start { [self] in
            if user == nil { serveUnknown(connection) } else { serve(connection) }
        }
        if !isStarted {
            connection.refuse(KeychainFailure(.allocate, "keychaind has no thread for another connection"))
            remove(connection, of: user)
        }
    }

    private static func tooManyConnections(of user: UInt32) -> KeychainFailure {
        KeychainFailure(.notAvailable, "the programs of user \(user) have too many connections to keychaind", cause: .busy)
    }

    /// Serves a connection that counts for its user until it ends.
    private func serve(_ connection: ServedConnection) {
        let limits = limits.withLock { limits in
            let ofUser = limits[connection.userID] ?? UserLimits()
            limits[connection.userID] = ofUser
            return ofUser
        }
        connection.serve(
            services, limits, mayObserve: { mayObserve(connection.userID) },
            endOthers: { self.endConnections(ofUser: $0, except: connection) })
        remove(connection, of: connection.userID)
    }

    /// Serves a connection if its user has an account.
    private func serveUnknown(_ connection: ServedConnection) {
        do throws(KeychainFailure) {
            defer { remove(connection, of: nil) }
            try services.accounts.require(connection.userID)
            guard admit(connection, of: connection.userID) else { throw Self.tooManyConnections(of: connection.userID) }
        } catch {
            return connection.refuse(error)
        }
        serve(connection)
    }

    /// Counts a connection, and ends the one of its user that has been idle longest if many are.
    ///
    /// Returns false if the user has too many.
    private func admit(_ connection: ServedConnection, of user: UInt32?) -> Bool {
        connections.withLock { connections in
            var ofUser = connections[user] ?? []
            guard ofUser.count < Self.largestConnectionCount else { return false }
            let idle = ofUser.compactMap { other in
                if case .idle(let since) = other.use { (connection: other, since: since) } else { nil }
            }
            // The connection stays counted until its thread has ended, which is soon.
            if idle.count >= Self.largestIdleCount { idle.min { $0.since < $1.since }?.connection.finish() }
            ofUser.append(connection)
            connections[user] = ofUser
            return true
        }
    }

    private func mayObserve(_ user: UInt32) -> Bool {
        connections.withLock { connections in
            let count = connections[user]?.count { if case .observing = $0.use { true } else { false } } ?? 0
            return count < Self.largestObservationCount
        }
    }

    /// Ends connections after the requests that were received.
    private func endConnections(ofUser user: UInt32, except connection: ServedConnection) {
        for other in connections.withLock({ $0[user] ?? [] }) where other !== connection { other.finish() }
    }

    private func remove(_ connection: ServedConnection, of user: UInt32?) {
        connections.withLock { connections in
            connections[user]?.removeAll { $0 === connection }
            if connections[user]?.isEmpty == true { connections.removeValue(forKey: user) }
        }
    }

    /// Waits until all connections have ended, for at most five seconds.
    private func finish() {
        for connection in connections.withLock({ $0.values.flatMap(\.self) }) { connection.finish() }
        let deadline = Deadline.after(seconds: 5)
        while !deadline.isOver, connections.withLock({ !$0.isEmpty }) { MonotonicClock.sleep(nanoseconds: 1_000_000) }
    }
}
