// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import KeychainTesting
import Synchronization
import Testing
import Valet

/// ValetTests has the tests of one process.
@Suite("Changes by other processes are reported", .blocking, .timeLimit(.minutes(10)))
struct ChangeTests {
    /// A keychain, this process as the one that listens, and another one that writes.
    private final class Listener {
        let home: String
        private let valet: Valet
        private let keychain: LocalKeychain
        private let changes: AsyncStream<Void>

        init(home: String) throws {
            self.home = home
            keychain = try LocalKeychain.withCheapPasscode(home: home)
            valet = Valet.valet(with: "child", accessibility: .whenUnlocked)
            changes = CurrentKeychain.with(keychain) { [valet] in valet.changes }
        }

        var value: String? { CurrentKeychain.with(keychain) { try? valet.string(forKey: "key") } }

        /// Waits for changes until the value is this one.
        func waitUntilValue(is expected: String?) async {
            for await _ in changes where value == expected { return }
        }

        func set(_ value: String) throws { try CurrentKeychain.with(keychain) { try valet.setString(value, forKey: "key") } }

        func lock() throws { try LocalKeychain(home: home).lock(.everything) }
    }

    /// Sets the key in another process, which then ends.
    private func set(_ value: String, home: String) throws {
        let child = try ChildProcess(try BuiltProgram.path(of: "KeychainTestChild"), ["serve", home])
        #expect(try child.readLine() == "ready")
        child.send("set key \(value)")
        #expect(try child.readLine() == "done")
        child.closeInput()
        #expect(try child.waitUntilEnded() == .exited(0))
    }

    @Test("A write, by a process that ends and by one that stays")
    func writes() async throws {
        try await withTemporaryDirectory { home in
            let listener = try Listener(home: home)
            try listener.set("0")
            try set("1", home: home)
            await listener.waitUntilValue(is: "1")
            let child = try ChildProcess(try BuiltProgram.path(of: "KeychainTestChild"), ["serve", home])
            #expect(try child.readLine() == "ready")
            for number in 2...20 {
                child.send("set key \(number)")
                await listener.waitUntilValue(is: "\(number)")
            }
        }
    }

    @Test("A keychain that is created later, in directories that are created later and again")
    func created() async throws {
        try await withTemporaryDirectory { directory in
            let home = directory + "/a/b/home"
            let listener = try Listener(home: home)
            try FileManager.default.createDirectory(
                atPath: directory + "/a/b", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try set("1", home: home)
            await listener.waitUntilValue(is: "1")
            // As if a person starts over.
            try FileManager.default.moveItem(atPath: home, toPath: directory + "/old")
            await listener.waitUntilValue(is: nil)
            try set("2", home: home)
            await listener.waitUntilValue(is: "2")
        }
    }

    @Test("A keychain that is replaced and restored")
    func replaced() async throws {
        try await withTemporaryDirectory { home in
            let listener = try Listener(home: home)
            try listener.set("1")
            try LocalKeychain(home: home).snapshot(toPath: home + "/copy.db", replacing: false)
            try set("2", home: home)
            await listener.waitUntilValue(is: "2")
            _ = try LocalKeychain(home: home).restoreSnapshot(fromPath: home + "/copy.db", applying: true)
            await listener.waitUntilValue(is: "1")
            try set("3", home: home)
            await listener.waitUntilValue(is: "3")
        }
    }

    @Test("A keychain that is refused, and accepted later")
    func refused() async throws {
        try await withTemporaryDirectory { directory in
            let home = directory + "/home"
            try set("1", home: home)
            try FileManager.default.copyItem(atPath: home, toPath: directory + "/older")
            try set("2", home: home)
            let listener = try Listener(home: home)
            #expect(listener.value == "2")
            try FileManager.default.removeItem(atPath: home + "/keychain.db")
            for file in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: home + "/keychain.db" + file) }
            try FileManager.default.copyItem(atPath: directory + "/older/keychain.db", toPath: home + "/keychain.db")
            await listener.waitUntilValue(is: nil)
            _ = try LocalKeychain(home: home).acceptContent(applying: true)
            await listener.waitUntilValue(is: "1")
        }
    }

    @Test("A keychain whose key file is put back")
    func missingKeyFile() async throws {
        try await withTemporaryDirectory { directory in
            let home = directory + "/home"
            try set("1", home: home)
            try FileManager.default.moveItem(atPath: home + "/keys", toPath: directory + "/keys")
            let listener = try Listener(home: home)
            #expect(listener.value == nil)
            try FileManager.default.moveItem(atPath: directory + "/keys", toPath: home + "/keys")
            await listener.waitUntilValue(is: "1")
        }
    }

    @Test("Files that change when they are looked at and cannot be used are looked at once a second")
    func unusable() async throws {
        try await withTemporaryDirectory { directory in
            let looks = Mutex<[ContinuousClock.Instant]>([])
            let (calls, call) = AsyncStream.makeStream(of: Void.self)
            let watch = try FileWatch([FileWatch.Target(directory: directory) { $0 == "file" }]) { _ in
                looks.withLock { $0.append(.now) }
                try? Data("looked".utf8).write(to: URL(filePath: directory + "/file"), options: .atomic)
                call.yield()
                return .unusable
            }
            for await _ in calls.prefix(3) {}
            watch.cancel()
            let times = looks.withLock { $0 }
            for (first, second) in zip(times, times.dropFirst()) { #expect(first.duration(to: second) >= .milliseconds(900)) }
        }
    }

    private static let canLimitInotify: Bool = {
        let script = "echo 0 >/proc/sys/user/max_inotify_watches"
        return (try? ChildProcess.run("unshare", ["-Ur", "sh", "-c", script], environment: ["PATH": "/usr/bin:/bin"]))?.ending == .exited(0)
    }()

    @Test(
        "A user who has no inotify watches or instances left", .enabled(if: canLimitInotify, "requires user namespaces"),
        arguments: ["max_inotify_watches", "max_inotify_instances"])
    func withoutInotify(limit: String) throws {
        try withTemporaryDirectory { home in
            try set("1", home: home)
            let child = try ChildProcess(
                "unshare",
                [
                    "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/\(limit); exec \"$0\" listen",
                    try BuiltProgram.path(of: "KeychainTestChild"),
                ],
                environment: ["PATH": "/usr/bin:/bin", "KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": ""])
            #expect(try child.readLine() == "listening")
            for number in 2...4 {
                try set("\(number)", home: home)
                #expect(try child.readLine()?.hasPrefix("changed ") == true)
            }
        }
    }

    @Test("A lock by another process, and an unlock, which writes nothing")
    func locked() async throws {
        try await withTemporaryDirectory { home in
            let listener = try Listener(home: home)
            defer { LocalKeychain(home: home).forgetKeys() }
            try listener.set("1")
            try LocalKeychain.withCheapPasscode(home: home).setPasscode(Passcode(text: "swordfish"), autoLock: .never)
            try listener.lock()
            await listener.waitUntilValue(is: nil)
            try LocalKeychain(home: home).unlock(Passcode(text: "swordfish"), autoLock: .never)
            await listener.waitUntilValue(is: "1")
        }
    }

    @Test("A call after a notice does not use a keychain that was opened before")
    func callAfterNotice() throws {
        try withTemporaryDirectory { home in
            try LocalKeychain(home: home).addItem("account", "secret")
            let backend = RefusedLaterBackend(opened: try OpenedStore(home: home))
            let keychain = LocalKeychain(backend: backend)
            let statuses = Mutex<[KeychainStatus?]>([])
            let observation = try keychain.observeChanges {
                let failure = #expect(throws: KeychainFailure.self) { try keychain.secret(of: "account") }
                statuses.withLock { $0.append(failure?.status) }
            }
            // The watch begins to open the keychain. Before it has, another thread opens it too, and then the file is replaced.
            backend.beforeRefusal.withLock { action in
                action = { #expect(throws: Never.self) { try keychain.secret(of: "account") } }
            }
            backend.report(.replaced)
            #expect(statuses.withLock { $0 } == [.notAvailable])
            observation.cancel()
        }
    }
}

/// A keychain whose file is replaced, while it is opened, by one that is refused.
private final class RefusedLaterBackend: KeychainBackend {
    private let opened: OpenedStore
    /// Runs within the next opening, which is refused as all later ones are.
    let beforeRefusal = Mutex<(@Sendable () -> Void)?>(nil)
    private let isRefused = Atomic(false)
    private let onEvent = Mutex<(@Sendable (ContentEvent) -> ContentFinding)?>(nil)

    init(opened: OpenedStore) {
        self.opened = opened
    }

    var entitlements: Entitlements { Entitlements(applicationIdentifier: "KeychainTestChild") }
    var promptSettings: PromptSettings { PromptSettings(prompter: ScriptedPresencePrompter(), requester: "test") }
    var newKeychainHolder: KeyHolderKind { .processMemory }

    func passcodePolicy() -> PasscodePolicy { PasscodePolicy(minimumLength: 4, cost: .lowest) }

    func open(creating: Bool) throws(KeychainFailure) -> OpenKeychain {
        if let action = beforeRefusal.withLock({ $0.take() }) {
            action()
            isRefused.store(true, ordering: .relaxed)
        }
        guard !isRefused.load(ordering: .relaxed) else { throw SQLiteItemStore.failure(.superseded) }
        let store = opened.store
        return try opened.reopened(over: store, ProcessMemoryKeyHolder(storeID: store.storeID, epochSource: store.lockEpoch))
    }

    func watchContent(_ onEvent: @escaping @Sendable (ContentEvent) -> ContentFinding) -> any ContentWatch {
        self.onEvent.withLock { $0 = onEvent }
        return Watch()
    }

    /// Reports an event as the thread of the watch does.
    func report(_ event: ContentEvent) { _ = onEvent.withLock { $0 }?(event) }

    private final class Watch: ContentWatch {
        func cancel() {}
    }
}
