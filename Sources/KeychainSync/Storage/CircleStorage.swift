// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import SyncCore
internal import Synchronization

/// The objects of one circle in a storage, which may have several.
///
/// Each call has a deadline, because a storage of another package may hang.
struct CircleStorage: Sendable {
    let storage: any SyncStorage
    /// The directory of the circle, with a slash at its end.
    private let prefix: String

    init(_ storage: any SyncStorage, _ circle: CircleID) {
        self.storage = storage
        prefix = circle.hexadecimal + "/"
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
    func name(of complete: String) -> String? { complete.hasPrefix(prefix) ? String(complete.dropFirst(prefix.count)) : nil }

    func list(_ folder: ObjectName.Folder) async throws(SyncStorageError) -> [String] { try await list(folder.rawValue) }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try await StorageCall.run { [self] () async throws(SyncStorageError) in
            try await storage.list(prefix + folder).compactMap(name(of:))
        }
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        let (storage, prefix) = (storage, prefix)
        return try await StorageCall.run { () async throws(SyncStorageError) in try await storage.read(prefix + name, atMost: byteCount) }
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) {
        let (storage, prefix) = (storage, prefix)
        try await StorageCall.run { () async throws(SyncStorageError) in _ = try await storage.create(prefix + name, bytes) }
    }

    func remove(_ name: String) async throws(SyncStorageError) {
        let (storage, prefix) = (storage, prefix)
        try await StorageCall.run { () async throws(SyncStorageError) in try await storage.remove(prefix + name) }
    }
}

private enum StorageDeadline {
    static let seconds: UInt64 = 60
    static let calls = CallDeadlines(nanoseconds: seconds * 1_000_000_000)
}

/// A call of a storage, which ends once: with its result, or at its deadline.
private final class StorageCall<Value: Sendable>: Sendable {
    private let answer: Mutex<CheckedContinuation<Result<Value, SyncStorageError>, Never>?>
    private let body: @Sendable () async throws(SyncStorageError) -> Value

    static func run(_ body: @escaping @Sendable () async throws(SyncStorageError) -> Value) async throws(SyncStorageError) -> Value {
        let result = await withCheckedContinuation { StorageCall($0, body).start() }
        return try result.get()
    }

    private init(
        _ continuation: CheckedContinuation<Result<Value, SyncStorageError>, Never>,
        _ body: @escaping @Sendable () async throws(SyncStorageError) -> Value
    ) {
        answer = Mutex(continuation)
        self.body = body
    }

    private func start() {
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

    private func end(_ result: Result<Value, SyncStorageError>) {
        let continuation = answer.withLock { $0.take() }
        continuation?.resume(returning: result)
    }
}
#endif
