// SPDX-License-Identifier: Apache-2.0
internal import CSQLiteShims
package import KeychainCore
internal import KeychainSystem

/// The layer below SQLite that gives each page of a store's file a checksum, and refuses a page that has not the right one.
///
/// Without it one damaged byte can make a row vanish: SQLite takes what it reads for what was written.
package enum PageChecksums {
    /// The name under which SQLite knows the layer over the one named `base`; nil is the system's own.
    package static func vfsName(over base: String?) throws(KeychainFailure) -> String {
        // The name lives as long as the process.
        guard let name = unsafe keychain_page_checksums_vfs(base) else {
            throw KeychainFailure(.allocate, "SQLite's layer for files cannot be set up")
        }
        return unsafe String(cString: name)
    }

    /// The page that SQLite locks and never writes, which has none.
    private static let lockedPage: UInt64 = 0x4000_0000 / UInt64(StoreSchema.pageByteCount) + 1

    /// Puts its checksum into a whole page.
    static func stamp(_ page: inout [UInt8], number: UInt64) {
        let contentByteCount = Int(StoreSchema.pageByteCount) - Int(StoreSchema.reservedByteCountPerPage)
        guard number != lockedPage, page.count == Int(StoreSchema.pageByteCount) else { return }
        var checksum = [UInt8](repeating: 0, count: Int(StoreSchema.reservedByteCountPerPage))
        // A page and its checksum have the lengths that the function asks for.
        unsafe keychain_page_checksum(page, number, &checksum)
        page.replaceSubrange(contentByteCount..., with: checksum)
    }
}

extension SQLiteConnection {
    /// Has every page of the file checked, also while its first page in the file is not yet the one in the -wal file.
    func enablePageVerification() throws(KeychainFailure) {
        try expectSuccess(unsafe keychain_page_checksums_check(handle), "setting up")
    }

    /// Gives every page of the file its checksum and flushes them.
    ///
    /// The caller has locked the file for itself.
    func stampPages() throws(KeychainFailure) {
        try expectSuccess(unsafe keychain_page_checksums_stamp(handle), "writing checksums")
    }

    /// The numbers of the pages that are not what was written, those aside whose content is in the -wal file.
    ///
    /// Only within a read transaction.
    func damagedPages() throws(KeychainFailure) -> [Int64] {
        var pages: [Int64] = []
        var page: Int64 = 0
        repeat {
            try expectSuccess(unsafe keychain_page_checksums_next_damaged(handle, page, &page), "checking pages")
            if page > 0 { pages.append(page) }
        } while page > 0
        return pages
    }

    /// What of the -wal file cannot be reached, because it is damaged before that; nil where it is not.
    func walDamage() throws(KeychainFailure) -> WALDamage? {
        var count: Int64 = 0
        var soundByteCount: Int64 = 0
        try expectSuccess(unsafe keychain_wal_damage(handle, &count, &soundByteCount), "checking the -wal file")
        return count > 0 ? WALDamage(unreachableChangeCount: Int(count), soundByteCount: soundByteCount) : nil
    }

    private func expectSuccess(_ code: Int32, _ action: StaticString) throws(KeychainFailure) {
        guard code == 0 else { throw health.record(SQLiteFailure(code: code, action: action)) }
    }
}
