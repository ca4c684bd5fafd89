// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Synchronization

/// A new directory with mode 700, which is removed with its contents when the last reference to it is released.
///
/// Keep a reference while the path is used; `withTemporaryDirectory` does.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// With `inMemory`, the directory is in a file system in memory if there is one, where flushing costs nothing.
    package init(inMemory: Bool = false) throws {
        let memory = "/dev/shm"
        let base =
            inMemory && FileManager.default.isWritableFile(atPath: memory)
            ? memory : FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        path = base + "/keychain-test-" + UUID().uuidString.lowercased()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        makeRemovable()
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Restores permissions that tests have removed, which an ordinary user needs to delete the contents.
    private func makeRemovable() {
        for name in FileManager.default.enumerator(atPath: path)?.compactMap({ $0 as? String }) ?? [] {
            let below = path + "/" + name
            var information = stat()
            // `information` is ours; the path is copied for the call.
            guard unsafe lstat(below, &information) == 0, information.st_mode & S_IFMT == S_IFDIR else { continue }
            _ = unsafe chmod(below, 0o700)
        }
        _ = unsafe chmod(path, 0o700)
    }
}

extension TemporaryDirectory {
    private static let removedAtExit = Mutex<[String]>([])
    private static let removal: Void = {
        _ = atexit { for path in TemporaryDirectory.removedAtExit.withLock(\.self) { try? FileManager.default.removeItem(atPath: path) } }
    }()

    /// A directory for what all tests of a run share, which is removed when the process exits.
    package static func untilExit() throws -> TemporaryDirectory {
        removal
        let directory = try TemporaryDirectory()
        removedAtExit.withLock { $0.append(directory.path) }
        return directory
    }
}

/// Runs `body` with the path of a new directory, and removes the directory afterwards.
package func withTemporaryDirectory<Result>(inMemory: Bool = false, _ body: (String) throws -> Result) throws -> Result {
    let directory = try TemporaryDirectory(inMemory: inMemory)
    return try withExtendedLifetime(directory) { try body(directory.path) }
}

/// Runs `body` with the path of a new directory, which is removed afterwards.
package func withTemporaryDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try await body(directory.path)
}

/// The names, types, modes, owners, and contents of all files below a directory, for comparison.
///
/// Creating one opens and closes each file, which drops this process's locks on it. So no keychain may be open there.
package struct FileSnapshot: Equatable, CustomStringConvertible {
    private let entries: [String: Entry]

    private struct Entry: Equatable {
        let mode: UInt32
        let owner: UInt32
        /// The bytes of a file, the target of a link.
        let content: Data
    }

    package init(of directory: String) throws {
        var entries: [String: Entry] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory) + ["."] {
            let path = directory + "/" + name
            var information = stat()
            // `information` is ours.
            guard unsafe lstat(path, &information) == 0 else { continue }
            let content: Data
            switch information.st_mode & S_IFMT {
            case S_IFREG: content = try Data(contentsOf: URL(filePath: path))
            case S_IFLNK: content = Data(try FileManager.default.destinationOfSymbolicLink(atPath: path).utf8)
            default: content = Data()
            }
            entries[name] = Entry(mode: information.st_mode, owner: information.st_uid, content: content)
        }
        self.entries = entries
    }

    /// The names of all files and directories, sorted.
    package var names: [String] { entries.keys.filter { $0 != "." }.sorted() }

    package var description: String {
        entries.sorted { $0.key < $1.key }
            .map { "\($0.key) \(String($0.value.mode, radix: 8)) \($0.value.content.count) bytes" }.joined(separator: ", ")
    }
}
