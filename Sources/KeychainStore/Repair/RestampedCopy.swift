// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// A copy of a store's files in which every page of the database has the right checksum, whatever is in it.
///
/// Removed when this is let go of, unless it was given the store's name.
final class RestampedCopy {
    let path: String
    let pageCount: Int

    private static let chunkByteCount = 1 << 20
    /// What SQLite may have left beside a database that belongs to its content.
    static let logSuffixes = ["-wal", "-journal"]

    /// Throws, calling it damage, for a file that is not a whole number of pages of a store.
    init(of original: LockedDatabase, in location: StoreLocation) throws(KeychainFailure) {
        guard original.byteCount > 0, original.byteCount % Int64(StoreSchema.pageByteCount) == 0 else {
            throw KeychainFailure(
                .notAvailable, "the store is damaged: its file is cut off in the midst of a page; nothing was changed", isDamage: true)
        }
        // A name that nobody can guess or have left behind.
        path = location.directory + "/." + location.name + "." + Identifier128.random().hexadecimal + ".repair"
        pageCount = Int(original.byteCount / Int64(StoreSchema.pageByteCount))
        do throws(POSIX.ErrorNumber) {
            try Self.copy(original.descriptor, to: path, stampingPages: true)
            for suffix in Self.logSuffixes { try Self.copyLog(original.path + suffix, to: path + suffix) }
        } catch {
            throw PrivateDirectory.failure(error, location.directory)
        }
    }

    deinit { remove() }

    func remove() { for suffix in [""] + StoreLocation.companionSuffixes { POSIX.removeName(path + suffix) } }

    private static func copyLog(_ log: String, to path: String) throws(POSIX.ErrorNumber) {
        let descriptor: Int32
        do throws(POSIX.ErrorNumber) {
            descriptor = try POSIX.openToReadAndWrite(log)
        } catch .noEntry {
            return
        }
        defer { POSIX.closeDescriptor(descriptor) }
        try copy(descriptor, to: path, stampingPages: false)
    }

    private static func copy(_ original: Int32, to path: String, stampingPages: Bool) throws(POSIX.ErrorNumber) {
        try POSIX.makeFile(path)
        let copy = try POSIX.openForAppending(path)
        defer { POSIX.closeDescriptor(copy) }
        var buffer = [UInt8](repeating: 0, count: stampingPages ? StoreSchema.pageByteCount : chunkByteCount)
        var offset: Int64 = 0
        while true {
            let count = try POSIX.read(into: &buffer, from: original, at: offset)
            if count == 0 { break }
            if stampingPages { PageChecksums.stamp(&buffer, number: UInt64(offset) / UInt64(StoreSchema.pageByteCount) + 1) }
            try POSIX.write(count == buffer.count ? buffer : Array(buffer[..<count]), to: copy)
            offset += Int64(count)
        }
    }
}
