// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Accepts the connections of programs, and ends when it is told to.
final class Service: Sendable {
    /// The most connections of one user, so that one user's programs do not use up what others need.
    static let largestConnectionCount = 64

    private let parts: ServiceParts
    private let listener: PacketListener
    private let stop: WakeupDescriptor
    private let connections = Mutex<[UInt32: [ServedConnection]]>([:])

    init(_ parts: ServiceParts, _ listener: consuming PacketListener) throws(Errno) {
        self.parts = parts
        self.listener = listener
        stop = try WakeupDescriptor()
    }

    /// Makes `run` return.
    func end() { stop.set() }

    /// Serves connections until `end` is called, and then finishes the requests that were received.
    func run() throws(Errno) {
        while true {
            do throws(Errno) {
                guard let socket = try listener.accept(unless: stop.descriptor) else { break }
                serve(socket)
            } catch {
                // For a moment, or for this connection only.
                guard error.isShortage else { throw error }
                MonotonicClock.sleep(nanoseconds: Self.shortagePauseNanoseconds)
            }
        }
        finish()
    }

    private static let shortagePauseNanoseconds: UInt64 = 50_000_000

    private func serve(_ socket: consuming PacketSocket) {
        let connection: ServedConnection
        do throws(Errno) { connection = try ServedConnection(socket) } catch { return }
        guard admit(connection) else {
            return connection.refuse(
                KeychainFailure(
                    .notAvailable, "the programs of user \(connection.userID) have \(Self.largestConnectionCount) calls in progress",
                    cause: .busy))
        }
        let isStarted = BackgroundThread.start { [self] in
            connection.serve(parts)
            remove(connection)
        }
        if !isStarted {
            connection.refuse(KeychainFailure(.allocate, "keychaind has no thread for another connection"))
            remove(connection)
        }
    }

    /// Counts a connection; if its user has too many, ends the one that has been idle longest.
    ///
    /// Returns false if all of them are in use.
    private func admit(_ connection: ServedConnection) -> Bool {
        connections.withLock { connections in
            var ofUser = connections[connection.userID] ?? []
            if ofUser.count >= Self.largestConnectionCount {
                let idle = ofUser.enumerated().compactMap { index, other in other.idleSinceNanoseconds.map { (index, $0) } }
                guard let longest = idle.min(by: { $0.1 < $1.1 }) else { return false }
                ofUser.remove(at: longest.0).finish()
            }
            ofUser.append(connection)
            connections[connection.userID] = ofUser
            return true
        }
    }

    private func remove(_ connection: ServedConnection) {
        connections.withLock { connections in
            connections[connection.userID]?.removeAll { $0 === connection }
            if connections[connection.userID]?.isEmpty == true { connections[connection.userID] = nil }
        }
    }

    /// Waits until all connections have ended, for at most five seconds.
    private func finish() {
        for connection in connections.withLock({ $0.values.flatMap(\.self) }) { connection.finish() }
        let deadline = Deadline.after(seconds: 5)
        while !deadline.isOver, connections.withLock({ !$0.isEmpty }) { MonotonicClock.sleep(nanoseconds: 1_000_000) }
    }
}
