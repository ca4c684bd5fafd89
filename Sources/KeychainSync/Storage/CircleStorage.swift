// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import SyncCore
internal import Synchronization

/// The objects of one circle in a storage, which may have several.
///
/// Each call has a deadline, because a storage of another package may hang.
struct CircleStorage: Sendable {
    private let objects: CircleObjects

    var storage: any SyncStorage { objects.storage }

    init(_ storage: any SyncStorage, _ circle: CircleID) {
        objects = CircleObjects(storage: storage, prefix: circle.hexadecimal + "/")
    }

    /// Returns the circles that have objects in a storage, in ascending order.
    static func circles(in storage: any SyncStorage) async throws(SyncStorageError) -> [CircleID] {
        let names = try await StorageCall.run { () async throws(SyncStorageError) in try await storage.list("") }
        let circles = names.compactMap { name -> CircleID? in
            guard let digits = name.split(separator: "/").first, digits.utf8.count == 2 * Identifier128.byteCount else { return nil }
            return Identifier128(hexadecimal: String(digits)).map { CircleID($0) }
        }
        return Set(circles).sorted()
    }

    /// Returns the name of an object within the circle from its complete name; nil if it belongs to another circle.
    func name(of complete: String) -> String? { objects.name(of: complete) }

    /// Begins a call, and returns at once; `onEnd` is called once, with the result or at the deadline.
    func begin<Value: Sendable>(
        _ body: @escaping @Sendable (CircleObjects) async throws(SyncStorageError) -> Value,
        onEnd: @escaping @Sendable (Result<Value, SyncStorageError>) -> Void
    ) {
        StorageCall(onEnd) { [objects] () async throws(SyncStorageError) in try await body(objects) }.start()
    }

    func list(_ folder: ObjectName.Folder) async throws(SyncStorageError) -> [String] { try await list(folder.rawValue) }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try await StorageCall.run { [objects] () async throws(SyncStorageError) in try await objects.list(folder) }
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await StorageCall.run { [objects] () async throws(SyncStorageError) in try await objects.read(name, atMost: byteCount) }
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) {
        try await StorageCall.run { [objects] () async throws(SyncStorageError) in try await objects.create(name, bytes) }
    }

    func remove(_ name: String) async throws(SyncStorageError) {
        try await StorageCall.run { [objects] () async throws(SyncStorageError) in try await objects.remove(name) }
    }
}

/// The objects of one circle, for a call that has a deadline.
struct CircleObjects: Sendable {
    fileprivate let storage: any SyncStorage
    /// The directory of the circle, with a slash at its end.
    fileprivate let prefix: String

    fileprivate func name(of complete: String) -> String? {
        complete.hasPrefix(prefix) ? String(complete.dropFirst(prefix.count)) : nil
    }

    func list(_ folder: ObjectName.Folder) async throws(SyncStorageError) -> [String] { try await list(folder.rawValue) }

    fileprivate func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try await storage.list(prefix + folder).compactMap(name(of:))
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await storage.read(prefix + name, atMost: byteCount)
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) { _ = try await storage.create(prefix + name, bytes) }

    func remove(_ name: String) async throws(SyncStorageError) { try await storage.remove(prefix + name) }
}

private enum StorageDeadline {
    static let seconds: UInt64 = 60
    static let calls = CallDeadlines(nanoseconds: seconds * 1_000_000_000)
}

/// A call of a storage, which ends once: with its result, or at its deadline.
private final class StorageCall<Value: Sendable>: Sendable {
    private let onEnd: Mutex<(@Sendable (Result<Value, SyncStorageError>) -> Void)?>
    private let body: @Sendable () async throws(SyncStorageError) -> Value

    static func run(_ body: @escaping @Sendable () async throws(SyncStorageError) -> Value) async throws(SyncStorageError) -> Value {
        let result = await withCheckedContinuation { continuation in StorageCall({ continuation.resume(returning: $0) }, body).start() }
        return try result.get()
    }

    init(
        _ onEnd: @escaping @Sendable (Result<Value, SyncStorageError>) -> Void,
        _ body: @escaping @Sendable () async throws(SyncStorageError) -> Value
    ) {
        self.onEnd = Mutex(onEnd)
        self.body = body
    }

    func start() {
        Task { [self] in
            // Now, and not before there was a thread for this task.
            let deadline = StorageDeadline.calls.begin { [self] in
                end(.failure(SyncStorageError(.unavailable, "the storage has not answered for \(StorageDeadline.seconds) seconds")))
            }
            await perform()
            StorageDeadline.calls.end(deadline)
        }
    }

    private func perform() async {
        do throws(SyncStorageError) {
            end(.success(try await body()))
        } catch {
            end(.failure(error))
        }
    }

    private func end(_ result: Result<Value, SyncStorageError>) { onEnd.withLock { $0.take() }?(result) }
}
#endif
