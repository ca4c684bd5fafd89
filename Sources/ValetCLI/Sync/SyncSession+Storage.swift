// SPDX-License-Identifier: Apache-2.0
import KeychainSync
import KeychainSyncEtcd
import KeychainSystem

/// The storage of a circle: a folder, or a location that begins with `etcd://`.
extension SyncSession {
    /// The storage of the circle.
    func storage() throws(CommandFailure) -> any SyncStorage {
        let location = try perform { () async throws(SyncFailure) in try KeychainSync.location() }
        return try etcd(at: location) ?? FolderStorage(path: location)
    }

    /// The storage that a person names; a folder is prepared, if that is wanted, for a first circle.
    func storage(in location: String, isNew: Bool) throws(CommandFailure) -> any SyncStorage {
        if let storage = try etcd(at: location) { return storage }
        // `./folder` and `folder/` are names of one folder, and messages show its path.
        let parts = try BackupPath.absolute(location, of: "folder").split(separator: "/").filter { $0 != "." }
        let path = "/" + parts.joined(separator: "/")
        guard isNew else {
            guard (try? FileStatus(of: path, followsLinks: true))?.kind == .directory else {
                throw CommandFailure(
                    .notFound, "\(ItemListing.escapingUnprintable(path)) is not a folder",
                    advice: "Give the folder of this device in which the files of the other devices arrive.")
            }
            guard FileSystem.exists(path + "/" + FolderStorage.directoryName) else {
                throw CommandFailure(
                    SyncFailure(.noCircle, "\(ItemListing.escapingUnprintable(path)) has no circle, or it has not arrived yet"))
            }
            return FolderStorage(path: path)
        }
        do throws(CommandFailure) {
            return try perform { () async throws(SyncFailure) in
                do throws(SyncStorageError) { return try await FolderStorage.make(path: path) } catch { throw SyncFailure(error) }
            }
        } catch {
            throw CommandFailure(
                error.status, error.problem,
                advice: "No circle was made. Give a folder that this user can write, outside of the directory of the keychain.")
        }
    }

    /// A storage in etcd; nil if the location is a folder.
    private func etcd(at location: String) throws(CommandFailure) -> (any SyncStorage)? {
        guard location.hasPrefix("etcd:") else {
            guard !location.contains("://") else {
                throw CommandFailure(
                    .usage, "\(ItemListing.escapingUnprintable(location)) is neither a folder nor a location that begins with etcd://",
                    advice: "Give the path of a folder, or a location such as etcd://db1:2379,db2:2379/fleet.")
            }
            return nil
        }
        #if Etcd
        do throws(SyncStorageError) {
            return try EtcdStorage(location: location)
        } catch {
            throw CommandFailure(
                .usage, error.reason, advice: "Give a location such as etcd://db1:2379,db2:2379/fleet?ca=/etc/valet/ca.pem.")
        }
        #else
        throw CommandFailure(
            .unavailable, "this valet was built without etcd",
            advice: "Build one from the sources with `swift build -c release --traits Etcd --product valet`.")
        #endif
    }
}
