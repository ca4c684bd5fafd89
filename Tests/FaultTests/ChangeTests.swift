// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Synchronization
import Testing
import Valet

/// ValetTests has the tests of one process.
@Suite("Changes by other processes are reported", .blocking, .timeLimit(.minutes(2)))
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

    @Test("A lock by another process")
    func locked() async throws {
        try await withTemporaryDirectory { home in
            let listener = try Listener(home: home)
            try listener.set("1")
            try LocalKeychain.withCheapPasscode(home: home).setPasscode(Passcode(text: "swordfish"), autoLock: .never)
            try listener.lock()
            await listener.waitUntilValue(is: nil)
        }
    }
}
