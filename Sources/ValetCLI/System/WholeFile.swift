// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A file that only its owner can read, and that is there whole or not at all.
enum WholeFile {
    /// Writes `data` beside `path` and then puts it in place, flushed, so that a crash leaves the old file or the new one.
    static func write(_ data: Data, to path: String) throws(CommandFailure) {
        try requireReplaceable(path)
        let (folder, name) = split(path)
        let temporary = folder + "/.\(name).\(UInt64.random(in: 0 ... .max))"
        // O_EXCL and O_NOFOLLOW: nothing that somebody has put there is written through.
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path, errno) }
        var errorNumber = FileDescriptor.write(data, to: descriptor)
        if errorNumber == nil, fchmod(descriptor, 0o600) != 0 || fsync(descriptor) != 0 { errorNumber = errno }
        if close(descriptor) != 0, errorNumber == nil { errorNumber = errno }
        if errorNumber == nil, unsafe rename(temporary, path) != 0 { errorNumber = errno }
        if let errorNumber {
            _ = unsafe unlink(temporary)
            throw failure(path, errorNumber)
        }
        try flush(folder: folder, for: path)
    }

    /// Renaming over a device, a pipe or a link would put a file where something else is meant to be.
    private static func requireReplaceable(_ path: String) throws(CommandFailure) {
        var information = stat()
        guard unsafe lstat(path, &information) == 0 else {
            if errno == ENOENT { return }
            throw failure(path, errno)
        }
        guard information.st_mode & S_IFMT == S_IFREG else {
            throw CommandFailure(
                .usage, "what is at the path given to --output is not a regular file",
                advice: "Name a file, or leave out --output and send standard output there."
            )
        }
    }

    /// The folder's own entry is on disk only once the folder is flushed.
    private static func flush(folder: String, for path: String) throws(CommandFailure) {
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path, errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(path, errno) }
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let folder = String(path[..<slash])
        return (folder.isEmpty ? "/" : folder, String(path[path.index(after: slash)...]))
    }

    private static func failure(_ path: String, _ errorNumber: Int32) -> CommandFailure {
        CommandFailure(
            .unavailable, "the file given to --output cannot be written: \(FileDescriptor.message(errorNumber))",
            advice: "Check that its folder exists, is writable and has space left."
        )
    }
}
