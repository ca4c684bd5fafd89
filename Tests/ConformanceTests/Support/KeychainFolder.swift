// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport

/// A keychain in files, in a folder of its own that is gone afterwards.
struct KeychainFolder {
    private let configuration: KeychainConfiguration

    /// The database file.
    var storePath: String { configuration.storePath }

    static func with(_ body: (KeychainFolder) throws -> Void) throws {
        try withTemporaryDirectory { path in
            try body(KeychainFolder(configuration: KeychainConfiguration(home: path + "/keychain")))
        }
    }

    /// Runs `body` on the keychain as a process that has just begun would.
    func inFreshProcess<Result>(_ body: () throws -> Result) rethrows -> Result {
        try CurrentKeychain.with(keychain, body)
    }

    /// The keychain as a process that has just begun would open it.
    var keychain: LocalKeychain {
        LocalKeychain(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "application"))
    }

    var storeBytes: Data {
        get throws { try Data(contentsOf: URL(filePath: storePath)) }
    }

    /// Puts other bytes in the place of the database, and takes its log away.
    func replaceStore(with bytes: Data) throws {
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: storePath + suffix) }
        try FileManager.default.removeItem(atPath: storePath)
        try bytes.write(to: URL(filePath: storePath))
        try setMode(0o600)
    }

    func setMode(_ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: storePath)
    }

    /// Every file below the folder.
    var files: Set<String> {
        get throws {
            let home = URL(filePath: storePath).deletingLastPathComponent().path
            guard FileManager.default.fileExists(atPath: home) else { return [] }
            return Set(try FileManager.default.subpathsOfDirectory(atPath: home))
        }
    }
}
#endif
