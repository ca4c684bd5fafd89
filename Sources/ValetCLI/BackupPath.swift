// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Where a backup is or will be.
enum BackupPath {
    static func absolute(_ path: String) throws(CommandFailure) -> String {
        guard !path.isEmpty else { throw CommandFailure(.usage, "the name of the file is empty", advice: "Name a file.") }
        return path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }

    /// Throws if something has the name: before anybody is asked for a password.
    static func requireFree(_ path: String) throws(CommandFailure) {
        var information = stat()
        // `information` is ours and outlives the call.
        guard unsafe lstat(path, &information) == 0 else { return }
        throw BackupFailure.alreadyThere(path)
    }
}
