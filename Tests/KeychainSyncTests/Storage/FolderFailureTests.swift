// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainSync
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

/// A storage on a file system that is mounted for one test.
struct MountedFolder {
    enum Kind: String, CaseIterable, Sendable {
        case tmpfs, ext4, caseFolding, fat

        /// The kinds that can be mounted here.
        static let usable = allCases.filter(\.isUsable)

        /// Whether this process is root, outside most containers, and the kernel and the system have the file system.
        var isUsable: Bool { Self.usability[self] ?? false }

        private static let usability = Dictionary(
            uniqueKeysWithValues: allCases.map { kind in
                guard geteuid() == 0, let directory = try? TemporaryDirectory() else { return (kind, false) }
                guard (try? kind.mount(on: directory.path, byteCount: 16 << 20)) != nil else { return (kind, false) }
                return (kind, MountedFolder.run("umount", directory.path))
            })

        func mount(on path: String, byteCount: Int) throws {
            struct NotPossible: Error {}
            guard self != .tmpfs else {
                guard MountedFolder.run("mount", "-t", "tmpfs", "-o", "size=\(byteCount),mode=0700", "none", path) else {
                    throw NotPossible()
                }
                return
            }
            let image = path + ".image"
            defer { try? FileManager.default.removeItem(atPath: image) }
            try Data().write(to: URL(filePath: image))
            guard unsafe truncate(image, off_t(byteCount)) == 0 else { throw NotPossible() }
            let isFormatted =
                switch self {
                case .caseFolding: MountedFolder.run("mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8", image)
                case .fat: MountedFolder.run("mkfs.vfat", image)
                case .ext4, .tmpfs: MountedFolder.run("mkfs.ext4", "-q", image)
                }
            guard isFormatted, MountedFolder.run("mount", "-o", "loop", image, path) else { throw NotPossible() }
            if self == .caseFolding {
                _ = MountedFolder.run("rmdir", path + "/lost+found")
                guard MountedFolder.run("chattr", "+F", path) else {
                    _ = MountedFolder.run("umount", "--lazy", path)
                    throw NotPossible()
                }
            }
        }
    }

    private final class Mount: Sendable {
        let directory: TemporaryDirectory

        init(_ kind: Kind, byteCount: Int) throws {
            directory = try TemporaryDirectory()
            try kind.mount(on: directory.path, byteCount: byteCount)
        }

        deinit { _ = MountedFolder.run("umount", "--lazy", directory.path) }
    }

    let storage: FolderStorage
    private let mount: Mount
    var directory: TemporaryDirectory { mount.directory }

    init(_ kind: Kind, byteCount: Int = 32 << 20, options: FolderOptions = FolderOptions()) async throws {
        mount = try Mount(kind, byteCount: byteCount)
        storage = try await FolderStorage.make(path: mount.directory.path, outside: [], options: options)
    }

    @discardableResult
    static func run(_ program: String, _ arguments: String...) -> Bool {
        (try? ChildProcess.run(program, arguments, environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin"]).ending) == .exited(0)
    }
}

@Suite("A shared folder that fails", .blocking, .timeLimit(.minutes(10)))
struct FolderFailureTests {
    private let name = SampleObjects.batch(1)

    /// The codes of all calls on a storage.
    private func codes(of storage: FolderStorage) async -> [SyncStorageError.Code?] {
        [
            await storageError { () throws(SyncStorageError) in _ = try await storage.list("") }?.code,
            await storageError { () throws(SyncStorageError) in _ = try await storage.read(name, atMost: 9) }?.code,
            await storageError { () throws(SyncStorageError) in _ = try await storage.create(name, [1]) }?.code,
            await storageError { () throws(SyncStorageError) in try await storage.remove(name) }?.code,
        ]
    }

    @Test("A folder that is missing, empty, or a dangling link is unavailable, and nothing is created")
    func missing() async throws {
        let directory = try TemporaryDirectory()
        try FileManager.default.createDirectory(atPath: directory.path + "/empty", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: directory.path + "/link", withDestinationPath: directory.path + "/unmounted")
        let before = try FileSnapshot(of: directory.path)
        for name in ["missing", "empty", "link"] {
            #expect(
                await codes(of: FolderStorage(path: directory.path + "/" + name)) == Array(repeating: .unavailable, count: 4), "\(name)")
        }
        #expect(try FileSnapshot(of: directory.path) == before)
        #expect(await codes(of: FolderStorage(path: "relative")) == Array(repeating: .failed, count: 4))
    }

    @Test("A folder is prepared once, not in the keychain's directory, and not below a missing one")
    func preparation() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/shared"
        for _ in 0..<2 {
            let storage = try await FolderStorage.make(path: path, outside: [directory.path + "/keychain"], options: FolderOptions())
            _ = try await storage.create(name, [1])
            #expect(try await storage.list("") == [name])
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
        try FileManager.default.createDirectory(atPath: directory.path + "/keychain", withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(atPath: directory.path + "/link", withDestinationPath: directory.path + "/keychain")
        let before = try FileSnapshot(of: directory.path)
        for refused in ["keychain", "keychain/shared", "link", "link/shared"] {
            let error = await storageError { () throws(SyncStorageError) in
                _ = try await FolderStorage.make(
                    path: directory.path + "/" + refused, outside: [directory.path + "/keychain"], options: FolderOptions())
            }
            #expect(error?.code == .failed, "\(refused)")
        }
        let error = await storageError { () throws(SyncStorageError) in
            _ = try await FolderStorage.make(path: directory.path + "/a/b", outside: [], options: FolderOptions())
        }
        #expect(error?.code == .unavailable)
        #expect(try FileSnapshot(of: directory.path) == before)
    }

    @Test("A disk that is unmounted is unavailable", .enabled(if: MountedFolder.Kind.tmpfs.isUsable, "mounting requires root"))
    func unmounted() async throws {
        let folder = try await MountedFolder(.tmpfs)
        _ = try await folder.storage.create(name, [1])
        MountedFolder.run("umount", "--lazy", folder.directory.path)
        #expect(await codes(of: folder.storage) == Array(repeating: .unavailable, count: 4))
        #expect(try FileSnapshot(of: folder.directory.path).names == [])
    }

    @Test(
        "On a full disk nothing is left of an object", .enabled(if: MountedFolder.Kind.tmpfs.isUsable, "mounting requires root"),
        arguments: [true, false])
    func full(hasUnnamedFiles: Bool) async throws {
        var options = FolderOptions()
        options.hasUnnamedFiles = hasUnnamedFiles
        let folder = try await MountedFolder(.tmpfs, byteCount: 1 << 20, options: options)
        _ = try await folder.storage.create(name, [1])
        let large = SampleObjects.batch(2)
        let error = await storageError { () throws(SyncStorageError) in
            _ = try await folder.storage.create(large, SampleObjects.bytes(2 << 20))
        }
        #expect(error?.code == .full)
        #expect(error?.reason.contains(folder.directory.path) == true)
        #expect(try await folder.storage.list("") == [name])
        #expect(try FileSnapshot(of: folder.directory.path).names.filter { $0.hasSuffix(".tmp") } == [])
        #expect(try await folder.storage.create(SampleObjects.batch(3), SampleObjects.bytes(1_000)) == .created)
    }

    @Test("A disk that is mounted read-only is read", .enabled(if: MountedFolder.Kind.tmpfs.isUsable, "mounting requires root"))
    func readOnly() async throws {
        let folder = try await TemporaryFolder()
        _ = try await folder.storage.create(name, [1])
        let mount = try TemporaryDirectory()
        try #require(MountedFolder.run("mount", "--bind", folder.directory.path, mount.path))
        defer { MountedFolder.run("umount", "--lazy", mount.path) }
        try #require(MountedFolder.run("mount", "-o", "remount,bind,ro", mount.path))
        let storage = FolderStorage(path: mount.path)
        #expect(try await storage.list("") == [name])
        #expect(try await storage.read(name, atMost: 9) == [1])
        for other in [SampleObjects.batch(2), SampleObjects.names()[0]] {
            #expect(await storageError { () throws(SyncStorageError) in _ = try await storage.create(other, [1]) }?.code == .readOnly)
        }
        #expect(await storageError { () throws(SyncStorageError) in try await storage.remove(name) }?.code == .readOnly)
    }

    @Test("A folder of another user is not permitted", .requiresOrdinaryUser)
    func notPermitted() async throws {
        let folder = try await TemporaryFolder()
        _ = try await folder.storage.create(name, [1])
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: folder.root)
        #expect(await codes(of: folder.storage) == Array(repeating: .notPermitted, count: 4))
    }

    @Test(
        "A process that is killed leaves no part of an object, and what it acknowledged is there",
        arguments: ["unnamed", "renamed", "plain"])
    func killed(mode: String) async throws {
        for _ in 0..<Scale.pick(3, full: 50) {
            let folder = try await TemporaryFolder()
            let child = try ChildProcess(
                BuiltProgram.path(of: "KeychainTestChild"), ["objects-until-killed", folder.directory.path, mode])
            var acknowledged: [String] = []
            for _ in 0..<Int.random(in: 1...20) {
                let line = try #require(try child.readLine())
                acknowledged.append(String(line.dropFirst("ack ".count)))
            }
            child.send(signal: SIGKILL)
            _ = try child.waitUntilEnded()
            let names = try await folder.storage.list("")
            #expect(Set(names).isSuperset(of: acknowledged))
            for name in names { #expect(try await folder.storage.read(name, atMost: 1 << 20)?.count == 300_000, "\(name)") }
            if mode == "unnamed" { #expect(try Set(folder.files) == Set(names)) }
        }
    }
}

@Suite("Calls that may hang", .timeLimit(.minutes(10)))
struct BlockingCallTests {
    @Test("A call without an answer fails at its deadline, and further ones fail at once until it ends")
    func hanging() async throws {
        let calls = BlockingCalls(threadLimit: 2, deadlineNanoseconds: 20_000_000)
        let release = DispatchSemaphore(value: 0)
        for number in 0..<4 {
            let error = await storageError { () throws(SyncStorageError) in
                try await calls.run(at: "/server") { () throws(SyncStorageError) in release.wait() }
            }
            #expect(error?.code == .unavailable, "\(number)")
        }
        // Only two have a thread.
        release.signal()
        release.signal()
        while await storageError({ () throws(SyncStorageError) in try await calls.run(at: "/server") { () throws(SyncStorageError) in } })
            != nil
        {
            await Task.yield()
        }
        #expect(try await calls.run(at: "/server") { () throws(SyncStorageError) in 7 } == 7)
    }

    @Test("More calls than threads all get their answer")
    func many() async throws {
        let calls = BlockingCalls(threadLimit: 2)
        let sum = await withTaskGroup(of: Int?.self) { group in
            for number in 1...100 {
                group.addTask { try? await calls.run(at: "/") { () throws(SyncStorageError) in number } }
            }
            return await group.reduce(0) { $0 + ($1 ?? 0) }
        }
        #expect(sum == 5_050)
        let error = await storageError { () throws(SyncStorageError) in
            try await calls.run(at: "/") { () throws(SyncStorageError) in throw SyncStorageError(.full, "full") }
        }
        #expect(error == SyncStorageError(.full, "full"))
    }

    @Test("Calls that follow each other share a thread")
    func threads() async throws {
        let calls = BlockingCalls(threadLimit: 2)
        let end = Deadline.after(seconds: 60)
        var threads: Set<String> = []
        // A call may begin before the thread of the last one is ready for it.
        while true {
            let thread = try await calls.run(at: "/") { () throws(SyncStorageError) in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")) ?? ""
            }
            guard threads.insert(thread).inserted else { break }
            guard !end.isOver else { return #expect(Bool(false), "no thread was used twice") }
        }
    }

    @Test("A thread that ends because no call has come takes none with it")
    func endingThreads() async throws {
        let calls = BlockingCalls(threadLimit: 2, idleMilliseconds: 0)
        for number in 0..<500 { #expect(try await calls.run(at: "/") { () throws(SyncStorageError) in number } == number) }
    }

    @Test("A thread keeps nothing of a call while it waits for the next one")
    func release() async throws {
        final class Content: Sendable {}
        let calls = BlockingCalls(threadLimit: 1)
        weak var content: Content?
        do {
            let made = Content()
            content = made
            try await calls.run(at: "/") { () throws(SyncStorageError) in withExtendedLifetime(made) {} }
        }
        let end = Deadline.after(seconds: 5)
        while content != nil, !end.isOver { await Task.yield() }
        #expect(content == nil)
    }

    @Test("Each call ends at its deadline unless it has ended before, also one that begins after all others have ended")
    func deadlines() async throws {
        let deadlines = CallDeadlines(nanoseconds: 20_000_000)
        for _ in 0..<2 {
            let expired = Mutex<[Int]>([])
            let identifiers = (0..<4).map { number in deadlines.begin { expired.withLock { $0.append(number) } } }
            deadlines.end(identifiers[1])
            while expired.withLock({ $0.count }) < 3 { await Task.yield() }
            #expect(expired.withLock { $0 } == [0, 2, 3])
        }
    }
}
