// SPDX-License-Identifier: Apache-2.0
import CSQLite
import KeychainStore

extension ChildCommand {
    /// PATH SQL: edits the file of a keychain as somebody can who knows its format, page checksums included.
    static func editDatabase(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw BadArguments() }
        let vfsName = try PageChecksums.vfsName(over: nil)
        var database: OpaquePointer?
        defer { unsafe sqlite3_close(database) }
        // The handle is ours until it is closed.
        guard unsafe sqlite3_open_v2(arguments[0], &database, SQLITE_OPEN_READWRITE, vfsName) == SQLITE_OK,
            unsafe sqlite3_exec(database, arguments[1], nil, nil, nil) == SQLITE_OK
        else { throw BadArguments() }
    }
}
