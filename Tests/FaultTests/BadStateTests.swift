// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

/// A way in which the files of a keychain can be unusable, and the error that every call must throw.
struct UnusableState: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let place: Place
    let subject: KeychainFailure.Subject
    /// The cause; nil for damage, which SQLite finds with one of several codes.
    let cause: KeychainFailure.Cause?
    /// Brings a keychain with one item into this state.
    let prepare: @Sendable (_ home: String, _ keyFile: String) throws -> Void
    var configure: @Sendable (inout KeychainConfiguration) -> Void = { _ in }

    /// The path that the error must contain.
    enum Place {
        case home, store, keyFile

        func path(_ home: String, _ keyFile: String) -> String {
            switch self {
            case .home: home
            case .store: home + "/keychain.db"
            case .keyFile: keyFile
            }
        }
    }

    /// The subject is that of the file at `place`, if not given.
    init(
        _ description: String, _ place: Place, _ cause: KeychainFailure.Cause?, subject: KeychainFailure.Subject? = nil,
        prepare: @escaping @Sendable (_ home: String, _ keyFile: String) throws -> Void
    ) {
        testDescription = description
        self.place = place
        self.cause = cause
        self.subject = subject ?? (place == .keyFile ? .keyFile : .store)
        self.prepare = prepare
    }

    /// An intact keychain on a file system that reports a network type.
    init(networkFileSystem name: String, typeNumber: UInt32) {
        self.init("a network file system (\(name))", .home, .networkFileSystem(name: name)) { _, _ in }
        configure = { $0.storeOptions.fileSystem = FileSystemProbe { _ in typeNumber } }
    }

    static let all: [UnusableState] = storeFile + storeContent + keyFile + fileSystem

    private static let storeFile = [
        UnusableState("an empty file", .store, .empty) { home, _ in try replaceStore(home, by: Data()) },
        UnusableState("a directory in its place", .store, .notRegularFile) { home, _ in
            try FileManager.default.removeItem(atPath: store(home))
            try FileManager.default.createDirectory(atPath: store(home), withIntermediateDirectories: false)
        },
        UnusableState("a symbolic link", .store, .symbolicLink) { home, _ in
            try FileManager.default.moveItem(atPath: store(home), toPath: home + "/elsewhere.db")
            try FileManager.default.createSymbolicLink(atPath: store(home), withDestinationPath: "elsewhere.db")
        },
        UnusableState("a symbolic link to nothing", .store, .missing) { home, _ in
            try FileManager.default.removeItem(atPath: store(home))
            try FileManager.default.createSymbolicLink(atPath: store(home), withDestinationPath: "nowhere.db")
        },
        UnusableState("with a name in another directory", .store, .hardLinks) { home, _ in
            try FileManager.default.createDirectory(atPath: home + "/other", withIntermediateDirectories: false)
            try FileManager.default.linkItem(atPath: store(home), toPath: home + "/other/keychain.db")
        },
        UnusableState("readable by others", .store, .accessibleToOthers) { home, _ in try setMode(0o644, store(home)) },
        UnusableState("writable by the group", .store, .accessibleToOthers) { home, _ in try setMode(0o620, store(home)) },
        UnusableState("a directory open to others", .home, .accessibleToOthers) { home, _ in try setMode(0o755, home) },
    ]

    private static let storeContent = [
        UnusableState("a text file", .store, .foreignFile) { home, _ in
            try replaceStore(home, by: Data(String(repeating: "Dear diary, ", count: 1_000).utf8))
        },
        UnusableState("another program's database", .store, .foreignFile) { home, _ in
            try replaceStore(home, by: Data())
            try RawDatabase(store(home), stamps: false).execute("CREATE TABLE diary (entry TEXT); INSERT INTO diary VALUES ('Dear diary')")
        },
        UnusableState("a newer format", .store, .newerVersion) { home, _ in
            try RawDatabase(store(home)).execute("PRAGMA user_version = 4")
        },
        UnusableState("the unreleased format 1", .store, .unsupportedVersion) { home, _ in
            try RawDatabase(store(home)).execute("PRAGMA user_version = 1")
        },
        UnusableState("cut off in its first page", .store, nil) { home, _ in try truncateStore(home, to: 700) },
        UnusableState("cut off after its first page", .store, nil) { home, _ in try truncateStore(home, to: 4_096) },
        UnusableState("cut off within a page", .store, nil) { home, _ in try truncateStore(home, to: 3 * 4_096 + 100) },
        UnusableState("a page overwritten", .store, nil) { home, _ in
            let handle = try FileHandle(forUpdating: URL(filePath: store(home)))
            let offset: UInt64 = 9 * 4_096 + 4_000
            try handle.seek(toOffset: offset)
            // It may have any value.
            let byte = try #require(try handle.read(upToCount: 1)?.first)
            try handle.seek(toOffset: offset)
            try handle.write(contentsOf: Data([byte ^ 1]))
            try handle.close()
        },
        UnusableState("both copies of the keybag damaged", .store, .damaged, subject: .keybag) { home, _ in
            try RawDatabase(store(home)).execute(
                "UPDATE keybag SET bytes = zeroblob(length(bytes)); UPDATE keybag_copy SET bytes = zeroblob(length(bytes))")
        },
    ]

    private static let keyFile = [
        UnusableState("its key file gone", .keyFile, .missing) { _, keyFile in
            try FileManager.default.removeItem(atPath: keyFile)
        },
        UnusableState("its key file cut off", .keyFile, .malformed) { _, keyFile in
            try replace(keyFile, by: Data(contentsOf: URL(filePath: keyFile)).prefix(40))
        },
        UnusableState("its key file empty", .keyFile, nil) { _, keyFile in try replace(keyFile, by: Data()) },
        UnusableState("another secret in its key file", .store, .damaged, subject: .keybag) { _, keyFile in
            var content = try Data(contentsOf: URL(filePath: keyFile))
            content[40] ^= 1
            try replace(keyFile, by: content)
        },
        UnusableState("another store's key file in place of its own", .keyFile, .otherStore) { _, keyFile in
            var content = try Data(contentsOf: URL(filePath: keyFile))
            content[9] ^= 1
            try replace(keyFile, by: content)
        },
        UnusableState("its key file readable by others", .keyFile, .accessibleToOthers) { _, keyFile in try setMode(0o644, keyFile) },
        UnusableState("its key file a symbolic link", .keyFile, .symbolicLink) { home, keyFile in
            try FileManager.default.moveItem(atPath: keyFile, toPath: home + "/elsewhere")
            try FileManager.default.createSymbolicLink(atPath: keyFile, withDestinationPath: home + "/elsewhere")
        },
        UnusableState(
            "the store gone and its key file there", .store, .missing
        ) {
            home, _ in try FileManager.default.removeItem(atPath: store(home))
        },
        UnusableState("the store gone and its key file unreadable", .keyFile, .accessibleToOthers) { home, keyFile in
            try FileManager.default.removeItem(atPath: store(home))
            try setMode(0o640, keyFile)
        },
    ]

    // Source: statfs(2).
    private static let fileSystem = [
        UnusableState(networkFileSystem: "nfs", typeNumber: 0x6969), UnusableState(networkFileSystem: "cifs", typeNumber: 0xff53_4d42),
        UnusableState(networkFileSystem: "smb2", typeNumber: 0xfe53_4d42), UnusableState(networkFileSystem: "9p", typeNumber: 0x0102_1997),
        UnusableState(networkFileSystem: "afs", typeNumber: 0x5346_414f),
    ]

    /// Only root can change the owner of files.
    static let ownedByAnother = [
        UnusableState("another user's file", .store, .wrongOwner) { home, _ in try giveAway(store(home))
        },
        UnusableState("another user's directory", .home, .wrongOwner) { home, _ in
            try giveAway(home)
        },
        UnusableState("another user's key file", .keyFile, .wrongOwner) { _, keyFile in try giveAway(keyFile) },
    ]

    private static func store(_ home: String) -> String { home + "/keychain.db" }

    private static func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private static func giveAway(_ path: String) throws {
        try FileManager.default.setAttributes([.ownerAccountID: 12_345, .groupOwnerAccountID: 12_345], ofItemAtPath: path)
    }

    private static func replaceStore(_ home: String, by content: Data) throws { try replace(store(home), by: content) }

    private static func replace(_ path: String, by content: Data) throws {
        try content.write(to: URL(filePath: path))
        try setMode(0o600, path)
    }

    private static func truncateStore(_ home: String, to byteCount: UInt64) throws {
        let handle = try FileHandle(forWritingTo: URL(filePath: store(home)))
        try handle.truncate(atOffset: byteCount)
        try handle.close()
    }
}

@Suite("An unusable keychain is rejected with path and cause, and is not changed", .blocking)
struct BadStateTests {
    /// The calls of a keychain.
    enum Call: CaseIterable {
        case add, read, update, delete, report, verify

        func make(on keychain: LocalKeychain) throws(KeychainFailure) {
            switch self {
            case .add: try keychain.addItem("new", "a new secret")
            case .read: _ = try keychain.secret(of: "kept")
            case .update: try keychain.updateItem("kept", to: "another secret")
            case .delete: try keychain.deleteItem("kept")
            case .report: _ = try keychain.report()
            case .verify: _ = try keychain.verify(purgingQuarantine: true)
            }
        }
    }

    @Test("Every call throws notAvailable with path and cause, and nothing is changed", arguments: UnusableState.all)
    func badState(_ state: UnusableState) throws { try expectRefused(state) }

    @Test(
        "Files of another user are rejected and not changed",
        .requiresRoot, arguments: UnusableState.ownedByAnother)
    func ownedByAnother(_ state: UnusableState) throws { try expectRefused(state) }

    private func expectRefused(_ state: UnusableState) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keyFile = try Self.makeKeychain(home)
            try state.prepare(home, keyFile)
            let before = try FileSnapshot(of: home)
            for call in Call.allCases {
                // Each as the first call of a process.
                let failure = #expect(throws: KeychainFailure.self, "\(call)") {
                    try call.make(on: LocalKeychain(home: home, configure: state.configure))
                }
                guard let failure else { continue }
                #expect(failure.status == .notAvailable, "\(call): \(failure)")
                #expect(failure.path == state.place.path(home, keyFile) && failure.subject == state.subject, "\(call): \(failure)")
                #expect(failure.cause == state.cause || state.cause == nil, "\(call): \(failure)")
                #expect(try FileSnapshot(of: home) == before, "\(call)")
            }
        }
    }

    /// Creates a keychain with one item, and returns the path of the key file.
    static func makeKeychain(_ home: String) throws -> String {
        let keychain = LocalKeychain(home: home)
        try keychain.addItem("kept", "a secret that was there")
        let store = try #require(try keychain.report().store)
        return "\(home)/keys/\(store.id.hexadecimal).key"
    }

    @Test("With one damaged copy of the keybag the keychain works, and reports the damage", arguments: ["keybag", "keybag_copy"])
    func oneCopyDamaged(_ table: String) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            _ = try Self.makeKeychain(home)
            try RawDatabase(home + "/keychain.db").execute("UPDATE \(table) SET bytes = zeroblob(length(bytes))")
            let keychain = LocalKeychain(home: home)
            #expect(try keychain.secret(of: "kept") == "a secret that was there")
            #expect(try keychain.report().store?.damagedKeybagCopyCount == 1)
            #expect(try keychain.verify(purgingQuarantine: false).damagedKeybagCopyCount == 1)
        }
    }

    @Test(
        "Without a keychain, reading, updating, and deleting throw itemNotFound and create nothing",
        arguments: [Call.read, .update, .delete])
    func absent(_ call: Call) throws {
        try withTemporaryDirectory { directory throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try call.make(on: LocalKeychain(home: directory + "/home")) }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("A parent directory may be a symbolic link", arguments: ["link/home", "link/more/home"])
    func linkAbove(_ path: String) throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createDirectory(atPath: directory + "/real", withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: "real")
            _ = try Self.makeKeychain("\(directory)/\(path)")
            #expect(try LocalKeychain(home: "\(directory)/\(path)").secret(of: "kept") == "a secret that was there")
            let realPath = path.replacing("link", with: "real")
            #expect(try LocalKeychain(home: "\(directory)/\(realPath)").secret(of: "kept") == "a secret that was there")
        }
    }
}
