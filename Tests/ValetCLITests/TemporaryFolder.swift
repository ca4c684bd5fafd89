// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An empty folder that is gone afterwards.
struct TemporaryFolder {
    let path: String

    static func with<Result>(_ body: (TemporaryFolder) throws -> Result) throws -> Result {
        let url = FileManager.default.temporaryDirectory.appending(path: "valet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: url) }
        return try body(TemporaryFolder(path: url.path))
    }

    /// The environment of a command in this folder, and nothing of ours.
    var environment: [String] {
        [
            "HOME=\(path)", "KEYCHAIN_HOME=\(path)/keychain", "PATH=\(Self.folderOfProducts):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL=C.UTF-8", "TERM=xterm", "TZ=UTC", "COLUMNS=100",
        ]
    }

    /// Shows the folder in what came out as $HOME.
    func anonymised(_ text: String) -> String {
        text.replacingOccurrences(of: path, with: "$HOME")
    }

    /// Where the build put `valet`: beside the test bundle.
    private static let folderOfProducts: String = {
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return URL(filePath: executable).deletingLastPathComponent().path
    }()
}
