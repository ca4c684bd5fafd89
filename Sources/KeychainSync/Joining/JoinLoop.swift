// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import SyncCore

/// Performs what one side of joining asks for, one call of the storage after the other, until a person is needed or it is over.
///
/// The storage's hints begin a round, and so does a timer, because hints may be lost.
struct JoinLoop: Sendable {
    let storage: CircleStorage
    let clock: any WallClock

    /// Runs rounds until `step` returns nil.
    ///
    /// `continues`: whether the storage could be used before, in an earlier call of this function.
    ///
    /// `step` handles an event and returns what has to be done, or nil once there is nothing to wait for. Errors of the storage are waited out, once something
    /// could be listed or read, and something created: the side itself ends after its time. Throws `.invitationEnded` if the task is canceled, `.storage` if
    /// the storage cannot be used from the beginning, and what `step` throws.
    nonisolated(nonsending) func run(
        continues: Bool, _ step: nonisolated(nonsending) (SyncEvent) async throws(SyncFailure) -> [SyncEffect]?
    ) async throws(SyncFailure) {
        let (inputs, inbox) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let storage = storage
        let hints = Task { for await _ in storage.storage.changes() { inbox.yield() } }
        let timer = Task {
            while (try? await Task.sleep(for: .seconds(1))) != nil { inbox.yield() }
        }
        defer {
            hints.cancel()
            timer.cancel()
        }
        var iterator = inputs.makeAsyncIterator()
        var access = Access(hasRead: continues, hasCreated: continues)
        repeat {
            guard try await round(&access, step) else { return }
        } while await iterator.next() != nil
        throw SyncFailure(.invitationEnded, "the task was canceled")
    }

    /// Begins with a wake-up, and handles all that follows from it; returns false once there is nothing to wait for.
    private nonisolated(nonsending) func round(
        _ access: inout Access, _ step: nonisolated(nonsending) (SyncEvent) async throws(SyncFailure) -> [SyncEffect]?
    ) async throws(SyncFailure) -> Bool {
        var events: [SyncEvent] = [.wake]
        while !events.isEmpty {
            guard let effects = try await step(events.removeFirst()) else { return false }
            for effect in effects {
                do throws(SyncStorageError) {
                    if let event = try await perform(effect) { events.append(event) }
                    access.note(effect)
                } catch {
                    guard access.contains(effect) else { throw SyncFailure(error) }
                    // The next round tries again.
                    if case .read(let name, _) = effect { events.append(.failed(name)) }
                }
            }
        }
        return true
    }

    /// Performs effects without handling their results: the end of an invitation.
    func finish(_ effects: [SyncEffect]) async {
        for effect in effects { _ = try? await perform(effect) }
    }

    private func perform(_ effect: SyncEffect) async throws(SyncStorageError) -> SyncEvent? {
        switch effect {
        case .list(let folder): return .listed(folder, try await storage.list(folder))
        case .read(let name, let byteCount): return .read(name, try await storage.read(name, atMost: byteCount))
        case .create(let name, let bytes):
            try await storage.create(name, bytes)
            return .created(name)
        case .remove(let name): try await storage.remove(name)
        case .wake, .writeCheckpoint, .alarm: break
        }
        return nil
    }

    /// The kinds of calls that the storage has answered without an error.
    private struct Access {
        var hasRead: Bool
        var hasCreated: Bool

        mutating func note(_ effect: SyncEffect) {
            switch effect {
            case .list, .read: hasRead = true
            case .create: hasCreated = true
            case .remove, .wake, .writeCheckpoint, .alarm: break
            }
        }

        /// Whether the storage could do this before, so that an error may pass.
        func contains(_ effect: SyncEffect) -> Bool {
            switch effect {
            case .list, .read: hasRead
            case .create: hasCreated
            case .remove, .wake, .writeCheckpoint, .alarm: true
            }
        }
    }
}
#endif
