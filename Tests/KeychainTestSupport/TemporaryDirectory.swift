// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A fresh directory below the system's temporary one, for its owner alone; removed with all it holds when the last reference goes.
///
/// Hold on to it for as long as the path is used: `withTemporaryDirectory` does.
package final class TemporaryDirectory: Sendable {
    package let path: String

    /// Where a place in memory is asked for and there is one, flushing costs nothing.
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

    /// Tests take permissions away; without them an ordinary user cannot remove what is inside.
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

/// Runs `body` with the path of a directory that is gone afterwards.
package func withTemporaryDirectory<Result>(inMemory: Bool = false, _ body: (String) throws -> Result) throws -> Result {
    let directory = try TemporaryDirectory(inMemory: inMemory)
    return try withExtendedLifetime(directory) { try body(directory.path) }
}
