// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A temporary folder for one run, removed also after an interruption.
struct ThrowAwayFolder {
    let path: String

    /// Creates a folder in `parent`, with a short name, because the path of a socket is limited to 107 bytes.
    init(in parent: String = FileManager.default.temporaryDirectory.path) throws {
        var template = Array((parent.hasSuffix("/") ? "\(parent)keychain-XXXXXX" : "\(parent)/keychain-XXXXXX").utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw CocoaError(.fileWriteUnknown) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        Interruption.remember(path)
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Creates a folder in this one.
    func makeFolder(_ name: String) throws -> String {
        let folder = path + "/" + name
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return folder
    }
}
