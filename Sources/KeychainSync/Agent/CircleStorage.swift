// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import SyncCore

/// The objects of one circle in a storage, which may have several.
struct CircleStorage: Sendable {
    let storage: any SyncStorage
    /// The directory of the circle, with a slash at its end.
    private let prefix: String

    init(_ storage: any SyncStorage, _ circle: CircleID) {
        self.storage = storage
        prefix = circle.hexadecimal + "/"
    }

    func list(_ folder: ObjectName.Folder) async throws(SyncStorageError) -> [String] {
        try await storage.list(prefix + folder.rawValue).compactMap { $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : nil }
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try await storage.read(prefix + name, atMost: byteCount)
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) { _ = try await storage.create(prefix + name, bytes) }

    func remove(_ name: String) async throws(SyncStorageError) { try await storage.remove(prefix + name) }
}
#endif
