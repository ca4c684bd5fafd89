// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainSync
internal import Synchronization

/// A storage in memory, shared by all devices of a test.
package final class InMemorySyncStorage: SyncStorage {
    private struct State {
        var objects: [String: [UInt8]] = [:]
        var error: SyncStorageError?
        var watchers: [Int: AsyncStream<SyncStorageChange>.Continuation] = [:]
        var lastWatcher = 0
    }

    private let state = Mutex(State())

    package let location = "memory"

    package init() {}

    /// Lets every call fail with `error`, or with nil succeed again.
    package func fail(with error: SyncStorageError?) { state.withLock { $0.error = error } }

    /// All objects; setting them is a change of which no call knows, such as a damaged or restored storage.
    package var objects: [String: [UInt8]] {
        get { state.withLock { $0.objects } }
        set {
            state.withLock { $0.objects = newValue }
            report(.unknown)
        }
    }

    package func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try StorageName.requireFolder(folder)
        return try access { objects in objects.keys.filter { folder.isEmpty || $0.hasPrefix(folder + "/") } }
    }

    package func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try StorageName.requireObject(name)
        return try access { objects in objects[name].flatMap { $0.count <= byteCount ? $0 : nil } }
    }

    package func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        try StorageName.requireObject(name)
        let present = try access { objects -> [UInt8]? in
            let present = objects[name]
            if present == nil { objects[name] = bytes }
            return present
        }
        guard let present else {
            report(.created([name]))
            return .created
        }
        guard present == bytes else { throw SyncStorageError(.failed, "\(name) has another content") }
        return .alreadyThere
    }

    package func remove(_ name: String) async throws(SyncStorageError) {
        try StorageName.requireObject(name)
        try access { objects in objects[name] = nil }
        report(.unknown)
    }

    package func changes() -> AsyncStream<SyncStorageChange> {
        AsyncStream { continuation in
            let number = state.withLock { state in
                state.lastWatcher += 1
                state.watchers[state.lastWatcher] = continuation
                return state.lastWatcher
            }
            continuation.onTermination = { [weak self] _ in self?.state.withLock { _ = $0.watchers.removeValue(forKey: number) } }
        }
    }

    private func access<Value>(_ body: (inout [String: [UInt8]]) -> sending Value) throws(SyncStorageError) -> Value {
        let result: Result<Value, SyncStorageError> = state.withLock { state in
            if let error = state.error { return .failure(error) }
            return .success(body(&state.objects))
        }
        return try result.get()
    }

    private func report(_ change: SyncStorageChange) {
        for watcher in state.withLock({ Array($0.watchers.values) }) { watcher.yield(change) }
    }
}
#endif
