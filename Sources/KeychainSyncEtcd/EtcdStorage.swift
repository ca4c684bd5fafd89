// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import Foundation
internal import KeychainSystem
public import KeychainSync

/// A storage in etcd (version 3.4 or newer), for devices that reach the same cluster, such as servers.
///
/// ```swift
/// let storage = try EtcdStorage(
///     location: "etcd://db1.example.com,db2.example.com/fleet?ca=/etc/valet/ca.pem&cert=/etc/valet/web.pem&key=/etc/valet/web.key")
/// ```
///
/// The objects are the keys below `<path>/keychain-sync-1/`; other keys are neither read nor changed. An object that was created is on the
/// disks of a majority of the cluster, and reads ask the majority, so a member that is behind does not return an older state.
///
/// | Part of the location | Meaning |
/// |---|---|
/// | `host`, `host:port` | A member of the cluster; several are separated by commas, and each is tried. The port is 2379 if it is missing |
/// | `/path` | The prefix of the keys |
/// | `tls=off` | Connects without TLS. Otherwise each member needs a certificate for the name in the location, or for the address that it is reached at |
/// | `ca` | The file of the certificates that sign those of the members (PEM); the system's if it is missing |
/// | `cert`, `key` | The files of the client certificate and its key (PEM) |
/// | `user`, `password-file` | The etcd user, if it is not named by the client certificate, and the file of the password |
///
/// The options follow a question mark, separated by `&`. Paths are absolute, and `%` with two digits stands for a character that has another
/// meaning.
///
/// A call that a member does not answer is repeated, also with the other members, and throws `SyncStorageError.Code.unavailable`
/// after ten seconds. Connections are made when they are needed and closed when the storage is released.
public final class EtcdStorage: SyncStorage {
    /// The location that the storage was created with.
    public let location: String
    private let parts: EtcdLocation
    private let cluster: EtcdCluster
    /// What all keys of this storage begin with; ends with a slash.
    private let root: String
    private let options: EtcdOptions

    /// What a listing may cost; as in a folder.
    private static let nameLimit = 1_000_000

    /// Creates a storage without connecting to it.
    ///
    /// - Parameter location: The location, beginning with `etcd://`.
    /// - Throws: `SyncStorageError.Code.failed` if the location is not well-formed; the reason says why.
    public convenience init(location: String) throws(SyncStorageError) {
        try self.init(location: location, options: EtcdOptions())
    }

    /// Creates a storage with options for tests.
    package init(location: String, options: EtcdOptions) throws(SyncStorageError) {
        parts = try EtcdLocation(location)
        self.location = location
        self.options = options
        root = parts.path + "/keychain-sync-1/"
        cluster = EtcdCluster(parts, options)
    }

    /// Lists the names of the objects in a folder and below it; see `SyncStorage.list(_:)`.
    ///
    /// - Parameter folder: A folder such as `b`, or the empty string for all objects.
    /// - Returns: At most 1,000,000 complete names.
    /// - Throws: The reason why the cluster does not list them.
    public func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try StorageName.requireFolder(folder)
        let prefix = folder.isEmpty ? root : root + folder + "/"
        var request = EtcdRangeRequest(prefix: prefix)
        request.keysOnly = true
        request.limit = Int64(options.pageLength)
        var names: [String] = []
        var keyCount = 0
        let end = Deadline.after(seconds: options.listingSeconds)
        while true {
            // Keys of other programs can be so long that a page is too large.
            let page = try await cluster.call(.range, &request, "list the objects") { request in
                guard request.limit > 1 else { return false }
                request.limit /= 2
                return true
            }
            request.limit = min(2 * request.limit, Int64(options.pageLength))
            for pair in page.kvs {
                // Keys that are not valid UTF-8 are not names of objects.
                guard let key = String(validating: pair.key, as: UTF8.self), key.hasPrefix(root) else { continue }
                let name = String(key.dropFirst(root.count))
                if StorageName.isObject(name) { names.append(name) }
            }
            keyCount += page.kvs.count
            guard page.more, let last = page.kvs.last, names.count < Self.nameLimit, keyCount < 2 * Self.nameLimit else { return names }
            // A server that goes back in the keys has no end.
            guard !last.key.lexicographicallyPrecedes(request.key), !end.isOver else {
                throw SyncStorageError(.unavailable, "etcd does not list all objects in \(options.listingSeconds) seconds, or not in order")
            }
            request.key = last.key + [0]
        }
    }

    /// Reads an object; see `SyncStorage.read(_:atMost:)`.
    ///
    /// - Parameters:
    ///   - name: A complete name.
    ///   - byteCount: The largest object that is accepted. A larger one is received nevertheless, up to etcd's limit of a request
    ///     (1.5 MiB by default).
    /// - Returns: The bytes; nil if there is no such key, or if its value is larger.
    /// - Throws: The reason why it is not known whether the object is there.
    public func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try StorageName.requireObject(name)
        var request = EtcdRangeRequest()
        request.key = Data((root + name).utf8)
        let response = try await cluster.call(.range, &request, "read \(name)")
        guard let value = response.kvs.first?.value, value.count <= byteCount else { return nil }
        return Array(value)
    }

    /// Creates an object; see `SyncStorage.create(_:_:)`.
    ///
    /// The transaction writes the key only if it does not exist, so it can be repeated when its outcome is unknown.
    ///
    /// - Parameters:
    ///   - name: A complete name.
    ///   - bytes: The content of the object; about 1.5 MiB at most, unless the cluster accepts larger requests.
    /// - Returns: Whether the object is new.
    /// - Throws: `SyncStorageError.Code.failed` if the key has another value, `SyncStorageError.Code.full` if
    ///   the cluster's quota is used up, and other reasons.
    public func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        try StorageName.requireObject(name)
        var request = EtcdTxnRequest(creating: Data((root + name).utf8), value: Data(bytes))
        let response = try await cluster.call(.transaction, &request, "create \(name)")
        if response.succeeded { return .created }
        guard response.responses.first?.responseRange.kvs.first?.value == Data(bytes) else {
            throw SyncStorageError(.failed, "\(name) in etcd has another content than this device gives it: it is damaged or foreign")
        }
        return .alreadyThere
    }

    /// Removes an object; see `SyncStorage.remove(_:)`.
    ///
    /// - Parameter name: A complete name.
    /// - Throws: The reason why the object cannot be removed.
    public func remove(_ name: String) async throws(SyncStorageError) {
        try StorageName.requireObject(name)
        var request = EtcdDeleteRangeRequest()
        request.key = Data((root + name).utf8)
        _ = try await cluster.call(.remove, &request, "remove \(name)")
    }

    /// Returns a new stream with an element whenever the objects may have changed; see `SyncStorage.changes()`.
    ///
    /// The first element comes once the cluster reports changes, so no change after it is missed. While it does not, an element comes every
    /// minute. After a break the changes meanwhile are reported; if the cluster has forgotten them, or was restored from a snapshot, an
    /// element comes at once.
    ///
    /// - Returns: A stream that ends when its task is canceled.
    public func changes() -> AsyncStream<SyncStorageChange> {
        .reporting { report in
            // On connections of its own. swift-nio-http2 1.46 closes one with 200 streams that were reset after their end, which etcd does where it
            // has answered a short call before it sees the end of the request.
            let hints = EtcdHints(cluster: EtcdCluster(parts, options), root: root, options: options, report: report)
            let task = Task { await hints.run() }
            return { task.cancel() }
        }
    }
}

/// Times and limits that tests change.
package struct EtcdOptions: Sendable {
    /// How long one member has to answer, in seconds.
    package var attemptSeconds = 4.0
    /// How long a call is repeated, in seconds.
    package var callSeconds: UInt32 = 10
    /// Seconds between two questions for the revision during a watch; without an answer for twice that long, another member is asked.
    package var heartbeatSeconds = 10.0
    /// Seconds between two hints because the revision has grown although no change was reported, or because there is no watch.
    package var checkSeconds = 60.0
    /// How long a listing of any number of objects may take, in seconds: an agent waits a minute for each call.
    package var listingSeconds: UInt32 = 50
    /// The keys in a response to a listing: each needs 200 to 600 bytes, and gRPC accepts 4 MiB.
    package var pageLength = 5_000

    package init() {}
}

extension EtcdRangeRequest {
    /// All keys that begin with `prefix`, which ends with a slash.
    init(prefix: String) {
        self.init()
        key = Data(prefix.utf8)
        rangeEnd = Data(etcdEnd(of: prefix))
    }
}

extension EtcdTxnRequest {
    /// Writes `key` if it does not exist, and otherwise returns its value.
    init(creating key: Data, value: Data) {
        self.init()
        var isAbsent = EtcdCompare()
        isAbsent.key = key
        isAbsent.target = .create
        isAbsent.result = .equal
        isAbsent.createRevision = 0
        var put = EtcdRequestOp()
        put.requestPut.key = key
        put.requestPut.value = value
        var get = EtcdRequestOp()
        get.requestRange.key = key
        (compare, success, failure) = ([isAbsent], [put], [get])
    }
}

/// The first key after all that begin with `prefix`, which ends with a slash.
func etcdEnd(of prefix: String) -> [UInt8] { Array(prefix.utf8.dropLast()) + [UInt8(ascii: "/") + 1] }
#endif
