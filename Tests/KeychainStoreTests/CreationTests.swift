// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@Suite("Creating a store", .blocking)
struct CreationTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test("A new store contains its identifier and two copies of its keybag, and reserves bytes on each page")
    func content() throws {
        let id = StoreID.random()
        let keybag = [UInt8](repeating: 0xAB, count: 3_000)
        try directory.remakeWithKeybag(keybag, id: id)
        let header = try Data(contentsOf: URL(fileURLWithPath: directory.storePath)).prefix(100)
        #expect(header.prefix(15) == Data("SQLite format 3".utf8))
        #expect([UInt8](header[16..<21]) == [0x10, 0x00, 2, 2, 16], "page size, write-ahead log twice, reserved bytes")
        #expect([UInt8](header[68..<72]) == Array("KCHN".utf8))
        let store = try SQLiteItemStore(openingAt: directory.storePath)
        #expect(store.storeID == id)
        let stored = try store.keybag()
        #expect(stored.generation == 5)
        #expect(stored.copies == [keybag, keybag])
        #expect(try store.integrityProblems() == [])
    }

    @Test("A value of 64 MiB is stored; a value beyond SQLite's limit fails with a parameter error")
    func largeValues() throws {
        let store = try directory.makeStore()
        var row = SampleRows.row(account: 1)
        row.sealedSecret = [UInt8](repeating: 7, count: 64 << 20)
        try store.insert([row])
        #expect(try store.rows().first?.sealedSecret == row.sealedSecret)
        var larger = SampleRows.row(account: 2)
        larger.sealedSecret = [UInt8](repeating: 7, count: 81 << 20)
        #expect(failure { () throws(KeychainFailure) in try store.insert([larger]) }?.status == .parameter)
        #expect(try store.rows().count == 1)
    }

    @Test("Missing directories are created, accessible only to the owner")
    func directories() throws {
        let path = directory.path + "/a/b/c/keychain.db"
        #expect(try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1) == .created)
        for name in ["/a", "/a/b", "/a/b/c"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + name)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
        #expect(try SQLiteItemStore.inspect(path) == .present)
    }

    @Test("The path may contain ..")
    func parentDirectory() throws {
        let path = directory.path + "/a/../b/./keychain.db"
        #expect(try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1) == .created)
        #expect(try SQLiteItemStore.inspect(directory.path + "/b/keychain.db") == .present)
    }

    @Test("An existing store is not changed")
    func alreadyThere() throws {
        let id = StoreID.random()
        try directory.create(storeID: id)
        let before = try directory.contents
        #expect(try directory.create() == .alreadyExists)
        #expect(try directory.contents == before)
    }

    @Test("Files left by an interrupted attempt do not prevent another one")
    func leftovers() throws {
        for name in [".keychain.db.0123456789abcdef0123456789abcdef.new", ".keychain.db.0123456789abcdef0123456789abcdef.new-wal"] {
            try Data("left over".utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name))
        }
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        #expect(try store.rows().count == 1)
    }

    @Test("Of many concurrent creations exactly one succeeds, and all callers open that store")
    func race() async throws {
        for _ in 1...10 {
            let directory = try TemporaryDirectory()
            let results = try await withThrowingTaskGroup(of: (CreationOutcome, StoreID).self) { group in
                for _ in 1...8 {
                    group.addTask {
                        let outcome = try directory.create()
                        return (outcome, try SQLiteItemStore(openingAt: directory.storePath).storeID)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.count { $0.0 == .created } == 1)
            #expect(Set(results.map(\.1)).count == 1)
            // If two connections close at the same moment, neither removes the -wal file, which is harmless.
            let left = try directory.names.filter { !["keychain.db", "keychain.db-shm", "keychain.db-wal"].contains($0) }
            #expect(left == [], "an attempt left something behind")
        }
    }

    @Test(
        "If the directory is not writable, the failure has its path",
        arguments: ["/proc/keychain/keychain.db", "/sys/keychain/keychain.db"])
    func impossible(path: String) {
        let failure = failure { () throws(KeychainFailure) in
            _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1)
        }
        #expect([.notAvailable, .readOnly].contains(failure?.status))
        #expect(failure?.path == String(path.dropLast("/keychain.db".count)))
    }
}

extension TemporaryDirectory {
    fileprivate func remakeWithKeybag(_ keybag: [UInt8], id: StoreID) throws {
        #expect(try SQLiteItemStore.create(at: storePath, storeID: id, keybag: keybag, generation: 5) == .created)
    }
}

@Suite("Publishing a file atomically", .blocking, .serialized)
struct AtomicFileTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/backup"
    }

    private func write(
        _ text: String, replacingExisting: Bool = false, supportsHardLinks: Bool = true
    ) throws(KeychainFailure) -> CreationOutcome {
        try AtomicFile(path, supportsHardLinks: supportsHardLinks).write(replacingExisting: replacingExisting) {
            writer throws(KeychainFailure) in
            for byte in text.utf8 { try writer.append([byte]) }
            #expect(!FileManager.default.fileExists(atPath: path) || replacingExisting, "it has its name before it is whole")
        }
    }

    @Test("If the content cannot be written, neither the temporary file nor a file beside it remains")
    func companions() throws {
        let file = try AtomicFile(path, companionSuffixes: ["-wal", "-journal"])
        let failure = failure { () throws(KeychainFailure) in
            _ = try file.publish { temporary throws(KeychainFailure) in
                for suffix in ["-wal", "-journal"] {
                    #expect(FileManager.default.createFile(atPath: temporary + suffix, contents: Data([1])))
                }
                throw KeychainFailure(.inputOutput, "planted")
            }
        }
        #expect(failure?.status == .inputOutput)
        #expect(try directory.names == [])
    }

    private var text: String? { FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } }

    @Test("The file exists, accessible only to its owner, and no other file remains", arguments: [true, false])
    func published(supportsHardLinks: Bool) throws {
        #expect(try write("whole", supportsHardLinks: supportsHardLinks) == .created)
        #expect(text == "whole")
        #expect(try directory.names == ["backup"])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    /// A process that is killed while it writes leaves no secret behind.
    @Test("A file that is being written has no name", arguments: [true, false])
    func unnamed(replacingExisting: Bool) throws {
        // Not every file system can have a file without a name.
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/backup"
        if replacingExisting { #expect(FileManager.default.createFile(atPath: path, contents: Data("first".utf8))) }
        _ = try AtomicFile(path).write(replacingExisting: replacingExisting) { writer throws(KeychainFailure) in
            try writer.append([1, 2, 3])
            #expect((try? directory.names) == (replacingExisting ? ["backup"] : []))
        }
        #expect(FileManager.default.contents(atPath: path) == Data([1, 2, 3]))
    }

    @Test("An existing file is not changed", arguments: [true, false])
    func notReplaced(supportsHardLinks: Bool) throws {
        try write("first").mustBeCreated()
        #expect(try write("second", supportsHardLinks: supportsHardLinks) == .alreadyExists)
        #expect(text == "first")
        #expect(try directory.names == ["backup"])
    }

    @Test("A file created meanwhile is not changed", arguments: [true, false])
    func notReplacedLate(supportsHardLinks: Bool) throws {
        let file = try AtomicFile(path, supportsHardLinks: supportsHardLinks)
        let outcome = try file.write { writer throws(KeychainFailure) in
            try writer.append([1])
            _ = FileManager.default.createFile(atPath: path, contents: Data("another's".utf8))
        }
        #expect(outcome == .alreadyExists)
        #expect(text == "another's")
        #expect(try directory.names == ["backup"])
    }

    @Test("With replacingExisting the file is replaced atomically")
    func replaced() throws {
        try write("a first and longer one").mustBeCreated()
        #expect(try write("second", replacingExisting: true) == .created)
        #expect(text == "second")
        #expect(try directory.names == ["backup"])
    }

    @Test("A failure leaves the previous file and no temporary file", arguments: [true, false])
    func failed(replacingExisting: Bool) throws {
        if replacingExisting { try write("first").mustBeCreated() }
        let failure = failure { () throws(KeychainFailure) in
            _ = try AtomicFile(path).write(replacingExisting: replacingExisting) { writer throws(KeychainFailure) in
                try writer.append([1, 2, 3])
                throw KeychainFailure(.interactionNotAllowed, "by the test")
            }
        }
        #expect(failure?.status == .interactionNotAllowed)
        #expect(text == (replacingExisting ? "first" : nil))
        #expect(try directory.names == (replacingExisting ? ["backup"] : []))
    }

    @Test("Only regular files are replaced")
    func notAFile() throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "elsewhere")
        #expect(failure { () throws(KeychainFailure) in _ = try write("x", replacingExisting: true) }?.status == .notAvailable)
        #expect(try write("x") == .alreadyExists)
        #expect(try directory.names == ["backup"])
    }

    @Test("A path without an existing directory is refused", arguments: ["relative", "/", "/nowhere at all/backup", ""])
    func badPath(path: String) {
        #expect(failure { () throws(KeychainFailure) in _ = try AtomicFile(path) }?.status == .notAvailable)
    }

    @Test("On a full disk no file remains", .enabled(if: TemporaryMount.isPossible))
    func full() throws {
        let mount = try TemporaryMount(byteCount: 64 * 1024)
        let file = try AtomicFile(mount.directory.path + "/backup")
        let failure = failure { () throws(KeychainFailure) in
            _ = try file.write { writer throws(KeychainFailure) in
                for _ in 0..<32 { try writer.append(Array(repeating: 7, count: 4_096)) }
            }
        }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.cause == .diskFull && failure?.path == mount.directory.path)
        #expect(try mount.directory.names == [])
    }
}
