// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// What is on a disk at one moment: paths below its root, and the content of the files.
package struct DiskImage: Hashable {
    var directories: Set<String> = []
    var files: [String: FileContent] = [:]

    package init() {}

    /// Reads a directory as it is.
    package init(below root: String) throws {
        for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/\(path)")
            if attributes[.type] as? FileAttributeType == .typeDirectory {
                directories.insert(path)
            } else {
                var content = FileContent()
                content.apply(.write(offset: 0, bytes: [UInt8](try Data(contentsOf: URL(filePath: "\(root)/\(path)")))))
                files[path] = content
            }
        }
    }

    /// The same without what SQLite keeps in memory that several processes share: it is not written, and nobody trusts it after a restart.
    package var withoutSharedMemory: DiskImage {
        var image = self
        for path in files.keys where path.hasSuffix("-shm") { image.files[path] = nil }
        return image
    }

    /// Puts it in the place of whatever is below `root`, for its owner alone.
    package func write(to root: String) throws {
        let manager = FileManager.default
        for name in try manager.contentsOfDirectory(atPath: root) { try manager.removeItem(atPath: "\(root)/\(name)") }
        // Shorter paths first: a directory comes before what is in it.
        for directory in directories.sorted() {
            try manager.createDirectory(
                atPath: "\(root)/\(directory)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        for (path, content) in files {
            let made = manager.createFile(
                atPath: "\(root)/\(path)", contents: Data(content.bytes), attributes: [.posixPermissions: 0o600])
            guard made else { throw CocoaError(.fileWriteUnknown) }
        }
    }

    /// The files as text, by their paths.
    package var contents: [String: String] { files.mapValues { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Names and sizes, for messages.
    package var summary: String {
        files.map { "\($0.key) (\($0.value.bytes.count))" }.sorted().joined(separator: ", ")
    }
}
