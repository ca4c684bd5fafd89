// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainSystem
import KeychainTestSupport
import Testing

@testable import keychaind

@Suite("Locking with the session", .blocking, .requiresLogindMock, .requiresRoot)
struct SessionWatchTests {
    private static let user = "\(geteuid())"

    @Test("The keychain is locked when the last of its user's graphical sessions is locked or gone, and nothing unlocks it")
    func sessions() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        try machine.logind("add", "c2", Self.user, "x11")
        try machine.logind("add", "c3", Self.user, "tty")
        try machine.logind("add", "c4", "61499", "wayland")
        try machine.startWatch()
        try machine.logind("locked", "c1", "true")
        try machine.logind("locked", "c4", "true")
        try machine.settle()
        #expect(try machine.isUnlocked())
        try machine.logind("remove", "c2")
        #expect(machine.isLockedSoon())
        try machine.logind("locked", "c1", "false")
        try machine.settle()
        #expect(try !machine.isUnlocked())
        // As after the prompt of the lock screen.
        try machine.unlock()
        try machine.settle()
        #expect(try machine.isUnlocked())
        try machine.logind("remove", "c1")
        #expect(machine.isLockedSoon())
    }

    @Test("A session that is asked to lock locks the keychain, also if it never says that it is locked")
    func lockRequest() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        try machine.startWatch()
        for _ in 0..<2 {
            try machine.logind("lock", "c1")
            #expect(machine.isLockedSoon())
            try machine.unlock()
        }
    }

    @Test("What another program says in the name of logind or of the bus locks nothing, and does not end the watcher")
    func forgedSignals() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        let watch = try machine.startWatch()
        try machine.logind("forge", "\(watch.processID)", "c1")
        try machine.settle()
        #expect(try machine.isUnlocked())
        #expect(try machine.logind("inhibitors") == "1")
        try machine.logind("lock", "c1")
        #expect(machine.isLockedSoon())
    }

    @Test("The keychain is locked before the system sleeps, which waits for it")
    func sleep() throws {
        let machine = try WatchedMachine()
        try machine.startWatch()
        #expect(try machine.logind("inhibitors") == "1")
        try machine.logind("sleep", "true")
        #expect(waitUntil { (try? machine.logind("inhibitors")) == "0" })
        #expect(try !machine.isUnlocked())
        try machine.logind("sleep", "false")
        #expect(waitUntil { (try? machine.logind("inhibitors")) == "1" })
    }

    @Test("The system does not wait for a keychaind that does not reply")
    func sleepWithoutReply() throws {
        let machine = try WatchedMachine()
        try machine.startWatch("--timeout=2")
        machine.service.process.send(signal: SIGSTOP)
        defer { machine.service.process.send(signal: SIGCONT) }
        try machine.logind("sleep", "true")
        #expect(waitUntil { (try? machine.logind("inhibitors")) == "0" })
    }

    @Test("A lock that keychaind did not perform is tried again")
    func retry() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        try machine.startWatch("--timeout=1")
        machine.service.process.send(signal: SIGSTOP)
        defer { machine.service.process.send(signal: SIGCONT) }
        try machine.logind("remove", "c1")
        try machine.settle()
        machine.service.process.send(signal: SIGCONT)
        #expect(machine.isLockedSoon())
    }

    @Test("A session that is idle for the configured time counts as locked")
    func idle() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        try machine.startWatch("--idle=2")
        try machine.logind("idle", "c1", "0")
        #expect(machine.isLockedSoon())
    }

    @Test("Idle sessions are ignored without a configured time")
    func ignoredIdle() throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        try machine.startWatch()
        try machine.logind("idle", "c1", "1000")
        try machine.settle()
        #expect(try machine.isUnlocked())
    }

    @Test("Each start of the watcher locks all keychains: a request to lock that came before is not repeated", arguments: [false, true])
    func start(isFirst: Bool) throws {
        let machine = try WatchedMachine()
        try machine.logind("add", "c1", Self.user, "wayland")
        if !isFirst {
            let watch = try machine.startWatch()
            watch.send(signal: SIGKILL)
            _ = try watch.waitUntilEnded()
        }
        try machine.logind("lock", "c1")
        #expect(try machine.isUnlocked())
        _ = try machine.startWatch(unlocking: false)
        #expect(try !machine.isUnlocked())
    }

    @Test("A watcher that has ended and is not back in time locks all keychains")
    func lostWatcher() throws {
        let machine = try WatchedMachine(timeoutSeconds: 1)
        let watch = try machine.startWatch()
        watch.send(signal: SIGKILL)
        _ = try watch.waitUntilEnded()
        #expect(machine.isLockedSoon())
    }

    @Test("A watcher that is back in time goes on in place of the one before")
    func replacedWatcher() throws {
        let machine = try WatchedMachine(timeoutSeconds: 1)
        let watch = try machine.startWatch()
        let next = try machine.startWatch()
        watch.send(signal: SIGKILL)
        _ = try watch.waitUntilEnded()
        try machine.settle()
        #expect(try machine.isUnlocked())
        next.send(signal: SIGKILL)
        #expect(machine.isLockedSoon())
    }

    @Test("While logind does not answer, all keychains are locked, however often the watcher is started again")
    func watcherWithoutLogind() throws {
        let machine = try WatchedMachine(timeoutSeconds: 1)
        let watch = try machine.startWatch()
        try machine.logind("end")
        #expect(try watch.waitUntilEnded() == .exited(1))
        let isLocked = waitUntil {
            _ = try? machine.makeWatch().waitUntilEnded()
            return (try? machine.isUnlocked()) == false
        }
        #expect(isLocked)
    }

    @Test("The watcher ends with logind, with the bus, and with keychaind", arguments: ["logind", "bus", "keychaind"])
    func lostService(name: String) throws {
        let machine = try WatchedMachine()
        let watch = try machine.startWatch()
        switch name {
        case "logind": try machine.logind("end")
        case "bus": machine.stopBus()
        default: machine.service.process.send(signal: SIGKILL)
        }
        #expect(try watch.waitUntilEnded() == .exited(1))
    }

    @Test("Only keychain-watch and root may lock the keychains of other users")
    func permission() throws {
        try withTemporaryDirectory { directory in
            let watch = SessionWatch(UserKeychains(in: directory), watcher: "daemon", timeoutSeconds: 10)
            let daemon = try #require(try UserDatabase.user(named: "daemon"))
            #expect(failure { try watch.requireWatcher(daemon) } == nil)
            #expect(failure { try watch.requireWatcher(0) } == nil)
            #expect(failure { try watch.requireWatcher(61_499) }?.status == .missingEntitlement)
            let unknown = SessionWatch(UserKeychains(in: directory), watcher: "no-such-user", timeoutSeconds: 10)
            #expect(failure { try unknown.requireWatcher(daemon) }?.status == .missingEntitlement)
            #expect(failure { try watch.lock(ofUser: nil) } == nil)
            #expect(failure { try watch.lock(ofUser: 61_499) } == nil)
        }
    }
}

/// keychaind with an unlocked keychain, and a message bus with a stand-in for logind.
private final class WatchedMachine {
    let service: SpawnedService
    private let directory: TemporaryDirectory
    private let bus: ChildProcess
    private let address: String
    private var watch: ChildProcess?

    init(timeoutSeconds: Int = 60) throws {
        service = try SpawnedService(options: ["--watcher-timeout", "\(timeoutSeconds)"]) { keychain in
            try keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .never)
        }
        directory = try TemporaryDirectory()
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Logind/logind.py").path
        bus = try ChildProcess("/usr/bin/python3", [script, directory.path], environment: ["PATH": "/usr/bin:/bin"])
        address = try #require(try bus.readLine())
        try unlock()
    }

    func unlock() throws { try service.client().unlock(try Passcode(text: "swordfish"), autoLock: .never) }

    func isUnlocked() throws -> Bool { try service.client().sessionStatus().state == .unlocked }

    func isLockedSoon() -> Bool { waitUntil { (try? isUnlocked()) == false } }

    /// Performs a command of `logind.py`, and returns its answer.
    @discardableResult
    func logind(_ words: String...) throws -> String {
        bus.send(words.joined(separator: " "))
        return try #require(try bus.readLine())
    }

    /// Ends the bus, and logind with it.
    func stopBus() { bus.closeInput() }

    /// Starts keychain-watch, returns when it watches, and unlocks the keychain, which it has locked.
    @discardableResult
    func startWatch(_ options: String..., unlocking: Bool = true) throws -> ChildProcess {
        let watch = try makeWatch(options)
        self.watch = watch
        try settle()
        if unlocking { try unlock() }
        return watch
    }

    func makeWatch(_ options: [String] = []) throws -> ChildProcess {
        try ChildProcess(
            try HelperProgram.watch.get(), ["--socket=" + service.path, "--timeout=60"] + options,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
    }

    /// Returns when the watcher has done what logind has reported before.
    func settle() throws { try logind("settle", "\(#require(watch).processID)") }
}
