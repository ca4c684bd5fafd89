// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainTestSupport
import KeychainTesting
import ServedKeychain
import Testing

#if !canImport(Darwin)
/// A keychain in a temporary folder.
struct KeychainFolder {
    private let configuration: KeychainConfiguration

    /// The database file.
    var storePath: String { configuration.storePath }

    static func with(_ body: (KeychainFolder) throws -> Void) throws {
        try withTemporaryDirectory { path in
            var configuration = KeychainConfiguration(home: path + "/keychain")
            // For the passwords of backups.
            configuration.useTestPolicy(in: path)
            try body(KeychainFolder(configuration: configuration))
        }
    }

    /// Runs `body` on the keychain as a new process.
    func inFreshProcess<Result>(_ body: () throws -> Result) rethrows -> Result {
        try CurrentKeychain.with(keychain, body)
    }

    /// The keychain as a new process opens it.
    var keychain: LocalKeychain {
        LocalKeychain(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "application"))
    }

    var storeBytes: Data {
        get throws { try Data(contentsOf: URL(filePath: storePath)) }
    }

    /// Replaces the database with other bytes, and removes its log.
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

#if !canImport(Darwin)
/// A program with entitlements of its own.
enum Program {
    /// Runs `body` as a program with these entitlements, on a keychain of its own.
    static func run<Result>(entitledTo entitlements: Entitlements, _ body: () throws -> Result) throws -> Result {
        try InMemoryKeychain(entitlements: entitlements).performAsTested(body)
    }

    /// Runs `body` as another program on the same keychain.
    static func runAnother<Result>(entitledTo entitlements: Entitlements, _ body: () throws -> Result) throws -> Result {
        try #require(InMemoryKeychain.current).sharedWithProgram(entitledTo: entitlements).performAsTested(body)
    }
}
#endif

#if !canImport(Darwin)
/// The states of a keychain: the columns of the table in section 8 of SecItem-behavior.md.
enum LockState: CaseIterable, Sendable {
    case neverUnlocked
    case locked
    case unlocked
    case noPasscode

    /// Changes the test's keychain from unlocked, or without a passcode, to this state.
    func enter() throws {
        let keychain = try #require(InMemoryKeychain.current)
        switch self {
        case .neverUnlocked: try keychain.restart()
        case .locked: try keychain.lock()
        case .unlocked, .noPasscode: try keychain.unlock()
        }
    }
}

/// The protection classes: the rows of the table in section 8 of SecItem-behavior.md.
enum ProtectionClass: String, CaseIterable, Sendable {
    case ak, aku, akpu, ck, cku, dk, dku

    var accessible: CFString { rawValue as CFString }

    /// Whether items of the class are accessible in that state.
    func isAvailable(in state: LockState) -> Bool {
        switch self {
        case .ak, .aku: state == .unlocked || state == .noPasscode
        case .akpu: state == .unlocked
        case .ck, .cku: state != .neverUnlocked
        case .dk, .dku: true
        }
    }
}
#endif

/// Advances the clock, so that new items have another date.
///
/// Otherwise the clock of an in-memory keychain does not advance.
func advanceClock() {
    #if !canImport(Darwin)
    InMemoryKeychain.current?.clock.advance(by: .seconds(1))
    #endif
}
