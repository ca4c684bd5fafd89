// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The files of the repository that the rules apply to.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Every Swift file of `Sources` and `Tests`, in the order of their paths.
    static func swiftFiles() throws -> [SourceFile] { try files.get() }

    /// Read once for all rules.
    private static let files = Result {
        try ["Sources", "Tests"].flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
                .filter { $0.hasSuffix(".swift") }
                .sorted()
                .map { try SourceFile(path: "\(folder)/\($0)", text: text(of: "\(folder)/\($0)")) }
        }
    }

    static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
