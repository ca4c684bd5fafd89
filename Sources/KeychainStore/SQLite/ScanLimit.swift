// SPDX-License-Identifier: Apache-2.0
internal import KeychainSystem

/// A limit on the work of a statement, so that it ends whatever the file contains.
///
/// In a damaged file, pages of a table can point at each other, or at one page many times. Six such pages can make a scan pass 10^12 rows.
/// No sound file has so many rows for its size.
final class ScanLimit {
    /// How many instructions of SQLite's virtual machine pass between two calls of the progress handler.
    static let instructionsPerCall: Int32 = 100_000

    private static let rowsOfAnyFile: Int64 = 1_000_000
    // A page has up to 13 rows of a table. No statement returns entries of an index, of which a page has up to 100.
    private static let rowsPerPage: Int64 = 16
    private static let instructionsOfAnyFile: Int64 = 20_000_000
    // The integrity check executes some 200 instructions for each row, and 30 for each entry of an index.
    private static let instructionsPerPage: Int64 = 10_000
    // A store has twelve tables and indexes.
    private static let instructionsOfSchema: Int64 = 1_000_000

    private let path: String
    private var isPreparing = false
    private var instructionCount: Int64 = 0

    /// `path` is that of the database.
    init(path: String) { self.path = path }

    func beginPreparing() {
        isPreparing = true
        instructionCount = 0
    }

    /// Begins the search for the next row.
    func beginStep() {
        isPreparing = false
        instructionCount = 0
    }

    /// Counts instructions; returns false if there are too many.
    func countInstructions() -> Bool {
        instructionCount += Int64(Self.instructionsPerCall)
        guard !isPreparing else { return instructionCount <= Self.instructionsOfSchema }
        return instructionCount <= Self.instructionsOfAnyFile
            || instructionCount <= Self.instructionsOfAnyFile + pageCount * Self.instructionsPerPage
    }

    /// Whether a statement may return so many rows.
    func allowsRows(_ count: Int64) -> Bool {
        guard count > Self.rowsOfAnyFile else { return true }
        return count % Self.rowsOfAnyFile != 0 || count <= Self.rowsOfAnyFile + pageCount * Self.rowsPerPage
    }

    /// The pages of the database and of its -wal file.
    private var pageCount: Int64 {
        let byteCounts = [path, path + "-wal"].map { (try? FileStatus(of: $0))?.byteCount ?? 0 }
        return byteCounts.reduce(0, +) / Int64(StoreSchema.pageByteCount)
    }
}
