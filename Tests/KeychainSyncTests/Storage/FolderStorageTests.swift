// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainSync
import KeychainTestSupport
import Testing

/// A new, empty storage in a folder of its own.
struct TemporaryFolder {
    let directory: TemporaryDirectory
    let storage: FolderStorage
    /// The same storage, as another device opens it.
    let other: FolderStorage
    /// The directory of the objects.
    var root: String { directory.path + "/keychain-sync-1" }

    init(inMemory: Bool = false, options: FolderOptions = FolderOptions()) async throws {
        directory = try TemporaryDirectory(inMemory: inMemory)
        storage = try await FolderStorage.make(path: directory.path, outside: [], options: options)
        other = FolderStorage(path: directory.path, options: options)
    }

    /// The names of all files below the root, also of those that are no objects.
    var files: [String] {
        get throws {
            try FileManager.default.subpathsOfDirectory(atPath: root).filter {
                try FileManager.default.attributesOfItem(atPath: root + "/" + $0)[.type] as? FileAttributeType != .typeDirectory
            }
        }
    }

    func makeDirectory(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: root + "/" + name, withIntermediateDirectories: true)
    }

    func write(_ name: String, _ bytes: [UInt8] = [1]) throws {
        try makeDirectory((name as NSString).deletingLastPathComponent)
        try Data(bytes).write(to: URL(filePath: root + "/" + name))
    }
}

/// Runs `body`, and returns its error.
func storageError(_ body: () async throws(SyncStorageError) -> Void) async -> SyncStorageError? {
    do throws(SyncStorageError) {
        try await body()
        return nil
    } catch {
        return error
    }
}

@Suite("The storage contract", .timeLimit(.minutes(10)))
struct StorageContractTests {
    @Test("A storage in memory follows the rule", arguments: SyncStorageContract.rules)
    func inMemory(rule: SyncStorageContract) async {
        let violations = await rule.violations(of: InMemorySyncStorage())
        #expect(violations == [])
    }

    @Test("A folder on a disk follows the rule", arguments: SyncStorageContract.rules)
    func folder(rule: SyncStorageContract) async throws {
        let folder = try await TemporaryFolder()
        let violations = await rule.violations(of: folder.storage, other: folder.other)
        #expect(violations == [])
    }

    @Test("A folder in memory follows the rule", arguments: SyncStorageContract.rules)
    func folderInMemory(rule: SyncStorageContract) async throws {
        let folder = try await TemporaryFolder(inMemory: true)
        let violations = await rule.violations(of: folder.storage, other: folder.other)
        #expect(violations == [])
    }

    @Test(
        "A folder without files without names, and one without renames that do not replace, follows the rule",
        arguments: SyncStorageContract.rules, [true, false])
    func limited(rule: SyncStorageContract, renamesWithoutReplacing: Bool) async throws {
        var options = FolderOptions()
        options.hasUnnamedFiles = false
        options.renamesWithoutReplacing = renamesWithoutReplacing
        let folder = try await TemporaryFolder(options: options)
        let violations = await rule.violations(of: folder.storage, other: folder.other)
        #expect(violations == [])
        #expect(try folder.files.allSatisfy(StorageName.isObject))
    }

    @Test("A folder on a file system of its own follows all rules", .blocking, .requiresRoot, arguments: MountedFolder.Kind.usable)
    func mounted(kind: MountedFolder.Kind) async throws {
        let folder = try await MountedFolder(kind, byteCount: 64 << 20)
        for (number, rule) in SyncStorageContract.rules.enumerated() {
            let path = folder.directory.path + "/\(number)"
            let storage = try await FolderStorage.make(path: path, outside: [], options: FolderOptions())
            let violations = await rule.violations(of: storage, other: FolderStorage(path: path))
            #expect(violations == [], "\(rule)")
        }
    }

    @Test(
        "A folder whose names ignore case follows the contract",
        .enabled(if: MountedFolder.Kind.caseFolding.isUsable, "the kernel cannot fold case"))
    func caseFolding() async throws {
        let folder = try await MountedFolder(.caseFolding)
        _ = try await folder.storage.create(SampleObjects.batch(1), [1])
        #expect(FileManager.default.fileExists(atPath: folder.directory.path + "/KEYCHAIN-SYNC-1/B"))
    }
}

@Suite("Foreign files in a shared folder", .timeLimit(.minutes(10)))
struct ForeignFileTests {
    private let name = SampleObjects.batch(7)

    @Test("Files that are not objects are not listed")
    func names() async throws {
        let folder = try await TemporaryFolder()
        _ = try await folder.storage.create(name, [1])
        let hash = String(SampleObjects.names()[0].dropFirst(2))
        for foreign in [
            "desktop.ini", ".DS_Store", "m/\(hash).sync-conflict-20261122-101010-ABCDEFG", "m/\(hash) (conflicted copy)",
            "m/\(hash.uppercased())", "m/~\(hash)", "M/\(hash)", "m/\(hash)/\(hash)", ".stversions/m/\(hash)", "m/.syncthing.\(hash).tmp",
            "x/\(hash)", "m/\(hash.dropLast())", "\(hash)", "b/\(hash)", "c/\(hash)\n", "p/é",
        ] {
            try folder.write(foreign)
        }
        #expect(try await folder.storage.list("") == [name])
        #expect(try await folder.storage.list("m") == [])
    }

    @Test("A pipe, a link, a socket, and a directory under the name of an object are neither listed, nor read, nor replaced")
    func otherKinds() async throws {
        let folder = try await TemporaryFolder()
        let path = folder.root + "/" + name
        try folder.makeDirectory(SampleObjects.log)
        try Data([1]).write(to: URL(filePath: folder.directory.path + "/target"))
        let kinds: [(String, () throws -> Void)] = [
            ("pipe", { #expect(unsafe mkfifo(path, 0o600) == 0) }),
            ("link", { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: folder.directory.path + "/target") }),
            ("dangling link", { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nowhere") }),
            ("directory", { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }),
        ]
        for (kind, make) in kinds {
            try make()
            #expect(try await folder.storage.list("") == [], "\(kind)")
            #expect(try await folder.storage.read(name, atMost: 9) == nil, "\(kind)")
            let error = await storageError { () throws(SyncStorageError) in _ = try await folder.storage.create(name, [1]) }
            #expect(error?.code == .failed && error?.reason.contains(path) == true, "\(kind)")
            #expect(unsafe Glibc.remove(path) == 0)
        }
        #expect(try await folder.storage.create(name, [1]) == .created)
    }

    @Test("Links in place of directories are not followed, but the folder itself may be a link")
    func links() async throws {
        let (folder, other) = (try await TemporaryFolder(), try await TemporaryFolder())
        _ = try await other.storage.create(name, [1])
        try FileManager.default.createSymbolicLink(atPath: folder.root + "/b", withDestinationPath: other.root + "/b")
        #expect(try await folder.storage.list("") == [])
        #expect(try await folder.storage.list("b") == [])
        #expect(try await folder.storage.read(name, atMost: 9) == nil)
        try await folder.storage.remove(name)
        #expect(try await other.storage.list("") == [name])
        let error = await storageError { () throws(SyncStorageError) in _ = try await folder.storage.create(SampleObjects.batch(1), [1]) }
        #expect(error?.code == .failed)
        #expect(try await other.storage.list("") == [name])

        let link = folder.directory.path + "/link"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: other.directory.path)
        #expect(try await FolderStorage(path: link).list("") == [name])
    }

    @Test("Temporary files of dead processes are removed after a day, and no others")
    func leftOver() async throws {
        var options = FolderOptions()
        options.hasUnnamedFiles = false
        let folder = try await TemporaryFolder(options: options)
        _ = try await folder.storage.create(name, [1])
        let file = String(name.split(separator: "/").last ?? "")
        let own = "\(SampleObjects.log)/.syncthing.\(file).0123456789abcdef0123456789abcdef.tmp"
        let foreign = "\(SampleObjects.log)/.syncthing.\(file).tmp"
        for temporary in [own, foreign] { try folder.write(temporary) }
        _ = try await folder.storage.list("")
        #expect(try Set(folder.files) == [name, own, foreign])
        for temporary in [own, foreign] {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -90_000)], ofItemAtPath: folder.root + "/" + temporary)
        }
        #expect(try await folder.storage.list("") == [name])
        #expect(try Set(folder.files) == [name, foreign])
    }

    @Test("A hundred thousand objects are listed", .blocking)
    func manyNames() async throws {
        let folder = try await TemporaryFolder(inMemory: true)
        try folder.makeDirectory("p")
        let names = (0..<100_000).map { number in
            let digits = String(number, radix: 16)
            return "p/" + String(repeating: "0", count: 64 - digits.count) + digits
        }
        for name in names {
            let descriptor = unsafe open(folder.root + "/" + name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            try #require(descriptor >= 0)
            close(descriptor)
        }
        let found = try await folder.storage.list("p")
        #expect(Set(found) == Set(names))
    }
}
