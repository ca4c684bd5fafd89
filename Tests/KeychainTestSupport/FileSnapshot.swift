// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// Everything below a directory: names, kinds, modes, contents.
///
/// Two are equal when nothing was changed.
///
/// Taking one opens and closes each file, which drops the locks that this process has on it: only while no keychain is open there.
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

    /// The names of all that is there, sorted.
    package var names: [String] { entries.keys.filter { $0 != "." }.sorted() }

    package var description: String {
        entries.sorted { $0.key < $1.key }
            .map { "\($0.key) \(String($0.value.mode, radix: 8)) \($0.value.content.count) bytes" }.joined(separator: ", ")
    }
}
