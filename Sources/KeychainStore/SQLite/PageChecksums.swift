// SPDX-License-Identifier: Apache-2.0
internal import CSQLiteShims
package import KeychainCore
internal import KeychainSystem

/// The VFS that adds a checksum to each page of a store's file, and fails to read a page whose checksum is wrong.
///
/// SQLite has no page checksums: a single damaged byte could make a row disappear.
package enum PageChecksums {
    /// Registers the VFS over the VFS named `base`, or over the default one, and returns its name.
    package static func vfsName(over base: String?) throws(KeychainFailure) -> String {
        // The name is never freed.
        guard let name = unsafe keychain_page_checksums_vfs(base) else {
            throw KeychainFailure(.allocate, "SQLite's file layer (VFS) cannot be registered", subject: .store)
        }
        return unsafe String(cString: name)
    }

    /// The number of the page that SQLite locks and never writes.
    ///
    /// It has no checksum.
    private static let lockedPage: UInt64 = 0x4000_0000 / UInt64(StoreSchema.pageByteCount) + 1

    /// Writes the checksum of a whole page into its last bytes.
    ///
    /// Does nothing for the page that SQLite locks, and for a page that is cut off.
    package static func writeChecksum(into page: inout [UInt8], number: UInt64) {
        let contentByteCount = Int(StoreSchema.pageByteCount) - Int(StoreSchema.reservedByteCountPerPage)
        guard number != lockedPage, page.count == Int(StoreSchema.pageByteCount) else { return }
        var checksum = [UInt8](repeating: 0, count: Int(StoreSchema.reservedByteCountPerPage))
        // A page and its checksum have the lengths that the function asks for.
        unsafe keychain_page_checksum(page, number, &checksum)
        page.replaceSubrange(contentByteCount..., with: checksum)
    }
}

extension SQLiteConnection {
    /// Enables verification of every page, even if the file's first page does not identify it as a store.
    func enablePageVerification() throws(KeychainFailure) {
        try expectSuccess(unsafe keychain_page_checksums_check(handle), "setting up")
    }

    /// Reads every page without verification.
    func ignorePageChecksums() throws(KeychainFailure) {
        try expectSuccess(unsafe keychain_page_checksums_ignore(handle), "setting up")
    }

    /// Runs `body`, which sees damaged pages as empty pages of an index.
    ///
    /// Only for emptying a table whose content may be lost.
    func readingDamagedPagesAsEmpty(_ body: () throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try expectSuccess(unsafe keychain_page_checksums_read_damaged_as_empty(handle, true), "setting up")
        defer { unsafe keychain_page_checksums_read_damaged_as_empty(handle, false) }
        try body()
    }

    /// Whether the first page has a wrong checksum although another page has a correct one, so that the file is a damaged store.
    func isFirstPageDamaged() throws(KeychainFailure) -> Bool {
        var isDamaged = false
        try expectSuccess(unsafe keychain_first_page_is_damaged(handle, &isDamaged), "checking the first page")
        return isDamaged
    }

    /// The number of damaged pages after which a search for others ends.
    ///
    /// A damaged file may have a hole of any size.
    static let damagedPageLimit = 1_000

    /// Returns the numbers of pages with a wrong checksum, except pages that have a newer version in the -wal file.
    ///
    /// Returns at most `limit` numbers. Requires a read transaction.
    func damagedPages(limit: Int = damagedPageLimit) throws(KeychainFailure) -> [Int64] {
        var pages: [Int64] = []
        var page: Int64 = 0
        repeat {
            try expectSuccess(unsafe keychain_page_checksums_next_damaged(handle, page, &page), "checking pages")
            if page > 0 { pages.append(page) }
        } while page > 0 && pages.count < limit
        return pages
    }

    /// Returns the damage of the -wal file; nil if there is none.
    func walDamage() throws(KeychainFailure) -> WALDamage? {
        var count: Int64 = 0
        var soundByteCount: Int64 = 0
        try expectSuccess(unsafe keychain_wal_damage(handle, &count, &soundByteCount), "checking the -wal file")
        return count > 0 ? WALDamage(unreachableChangeCount: Int(count), soundByteCount: soundByteCount) : nil
    }

    /// What this connection has written since `forgetOwnWrites`; nil if that is not known.
    var ownWrites: OwnWrites? {
        var database = keychain_own_writes()
        var log = keychain_own_writes()
        guard unsafe keychain_get_own_writes(handle, &database, &log) == 0 else { return nil }
        var isKnown = true
        func change(_ writes: keychain_own_writes, isLog: Bool) -> OwnWrites.Change? {
            guard let before = FileStamps.Stamp(writes.before, isLog: isLog) else { return nil }
            guard let after = FileStamps.Stamp(writes.after, isLog: isLog) else {
                // Written and not flushed.
                isKnown = false
                return nil
            }
            return OwnWrites.Change(before: before, after: after)
        }
        let writes = OwnWrites(database: change(database, isLog: false), log: change(log, isLog: true))
        return isKnown ? writes : nil
    }

    /// Begins to record the writes of this connection.
    func forgetOwnWrites() {
        unsafe keychain_forget_own_writes(handle)
    }

    func expectSuccess(_ code: Int32, _ action: StaticString) throws(KeychainFailure) {
        guard code == 0 else { throw health.record(SQLiteFailure(code: code, action: action)) }
    }
}
