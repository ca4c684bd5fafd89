// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Turns a store that nobody has open into one of format 1, as older versions of the library made them.
enum OldFormat {
    private static let pageByteCount = 4_096
    private static let checksumByteCount = 16
    /// Of the last byte of SQLite's user version.
    private static let versionOffset = 63

    struct Failure: Error {
        let call: StaticString
        let errorNumber: Int32
    }

    /// Says first that it is of format 1, where checksums mean nothing, and only then takes them away: a power cut leaves either.
    ///
    /// Does nothing while there is a -wal file, in which the version stands as well.
    static func make(at path: String) throws {
        // A name in the file system and nothing else: nothing is kept of it.
        guard unsafe access(path + "-wal", F_OK) != 0 else { return }
        // A -wal file that a power cut brings back would say again that it is of format 2.
        try flushDirectory(of: path)
        let file = unsafe open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { throw Failure(call: "open", errorNumber: errno) }
        defer { close(file) }
        try replace([1], in: file, at: versionOffset)
        let end = lseek(file, 0, SEEK_END)
        var page = [UInt8](repeating: 0, count: pageByteCount)
        for offset in stride(from: 0, to: Int(end), by: pageByteCount) {
            // The buffer has the page's size.
            guard unsafe pread(file, &page, pageByteCount, off_t(offset)) == pageByteCount else {
                throw Failure(call: "pread", errorNumber: errno)
            }
            page.replaceSubrange(
                pageByteCount - checksumByteCount..<pageByteCount, with: repeatElement(0, count: checksumByteCount))
            try replace(page, in: file, at: offset, flushing: false)
        }
        try flush(file)
    }

    private static func replace(_ bytes: [UInt8], in file: Int32, at offset: Int, flushing: Bool = true) throws {
        func write() throws {
            // The array is not changed meanwhile.
            guard unsafe pwrite(file, bytes, bytes.count, off_t(offset)) == bytes.count else {
                throw Failure(call: "pwrite", errorNumber: errno)
            }
        }
        try write()
        guard flushing else { return }
        do {
            try flush(file)
        } catch {
            // What a failed flush left out is brought to the disk by no other one, unless it is written again.
            try write()
            try flush(file)
        }
    }

    private static func flushDirectory(of path: String) throws {
        let name = path.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
        // A name in the file system and nothing else.
        let directory = unsafe open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Failure(call: "open", errorNumber: errno) }
        defer { close(directory) }
        do { try flush(directory) } catch { try flush(directory) }
    }

    private static func flush(_ file: Int32) throws {
        guard fsync(file) == 0 else { throw Failure(call: "fsync", errorNumber: errno) }
    }
}
