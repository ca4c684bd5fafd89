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

@Suite("Unlocking at login", .blocking, .requiresPAM)
struct LoginTests {
    @Test("Opening a session unlocks the keychain with the login password; a checked password alone does not")
    func session() throws {
        let service = try Self.lockedService()
        let login = Login(service.path)
        #expect(try login.run("authenticate", "establish") == ["authenticate succeeded", "establish succeeded"])
        #expect(try service.client().sessionStatus().state != .unlocked)
        #expect(
            try login.run("authenticate", "establish", "open", "close")
                == ["authenticate succeeded", "establish succeeded", "open succeeded", "close succeeded"])
        let status = try service.client().sessionStatus()
        #expect(status.state == .unlocked && status.autoLock == .standard)
    }

    @Test("A lock screen, which opens no session, unlocks the keychain again", arguments: ["refresh", "reinitialize"])
    func lockScreen(step: String) throws {
        let service = try Self.lockedService()
        #expect(try Login(service.path).run("authenticate", step) == ["authenticate succeeded", "\(step) succeeded"])
        #expect(try service.client().sessionStatus().state == .unlocked)
    }

    @Test("Unlocking the screen keeps the automatic lock of an unlocked keychain")
    func autoLock() throws {
        let service = try Self.lockedService()
        try service.client().unlock(try Passcode(text: "swordfish"), autoLock: .never)
        #expect(try Login(service.path).run("authenticate", "refresh").count == 2)
        #expect(try service.client().sessionStatus().autoLock == .never)
    }

    @Test("A wrong login password ends the login as without the module, and unlocks nothing")
    func wrongPassword() throws {
        let service = try Self.lockedService()
        let login = Login(service.path, password: "sword")
        #expect(try login.run("authenticate", "open", typing: "swordfish") == ["authenticate failed"])
        #expect(try service.client().sessionStatus().state != .unlocked)
    }

    @Test("A login password that is not the passcode changes nothing, and is not mentioned in the log")
    func otherPassword() throws {
        let service = try Self.lockedService()
        #expect(
            try Login(service.path, password: "Vespa é").run("authenticate", "open") == ["authenticate succeeded", "open succeeded"])
        #expect(try service.client().sessionStatus().state != .unlocked)
    }

    @Test("The password of one user is not tried on the keychain of another one, for whom the session is")
    func otherUser() throws {
        let service = try Self.lockedService()
        #expect(try Login(service.path).run("authenticate", "become-daemon", "open").last == "open succeeded")
        #expect(try service.client().sessionStatus().state != .unlocked)
    }

    @Test("A user without a keychain logs in, and gets none")
    func noKeychain() throws {
        let service = try SpawnedService(adopting: false)
        #expect(try Login(service.path).run("authenticate", "open") == ["authenticate succeeded", "open succeeded"])
        #expect(!FileManager.default.fileExists(atPath: service.directory.path + "/keychains/\(geteuid())"))
    }

    @Test("Without keychaind a login is the same, and the password is kept nowhere")
    func noService() throws {
        #expect(
            try Login("/nowhere/socket").run("authenticate", "search", "open")
                == ["authenticate succeeded", "search absent", "open succeeded"])
    }

    @Test("The password is in memory until the session is opened")
    func memory() throws {
        let service = try Self.lockedService()
        let login = Login(service.path)
        #expect(
            try login.run("authenticate", "search", "open", "search")
                == ["authenticate succeeded", "search found", "open succeeded", "search absent"])
        // Also in a program that opens the session for another user.
        #expect(try login.run("authenticate", "become-daemon", "refresh", "search").last == "search absent")
    }

    @Test("A login goes on while keychaind does not reply")
    func stoppedService() throws {
        let service = try Self.lockedService()
        service.process.send(signal: SIGSTOP)
        defer { service.process.send(signal: SIGCONT) }
        #expect(
            try Login(service.path, timeoutSeconds: 2).run("authenticate", "open")
                == [
                    "authenticate succeeded", "log: pam_keychain(test:session): keychaind has not replied in time",
                    "open succeeded",
                ])
    }

    @Test("A service that does not follow the protocol keeps no login from going on", arguments: HostileService.allCases)
    func hostileService(_ behavior: HostileService) throws {
        try withTemporaryDirectory { directory in
            let listener = try PacketListener(at: directory + "/socket")
            let login = try Login(directory + "/socket", timeoutSeconds: behavior == .silence ? 2 : 60).start("authenticate", "open")
            let connection = try listener.acceptOne()
            for packet in behavior.packets { try connection.send(packet, until: .after(seconds: 60)) }
            if !behavior.waits { connection.shutDown() }
            let lines = try Login.lines(login)
            #expect(lines.first == "authenticate succeeded" && lines.last == "open succeeded")
            #expect(lines.count == (behavior == .refusal ? 2 : 3))
        }
    }

    @Test("The messages are those of the vectors")
    func vectors() throws {
        let vectors: LoginVectors = try TestVectors.load("daemon-messages-v1.json")
        let nonce = [UInt8](repeating: 7, count: 16)
        for (step, name) in [("open", "a login"), ("change", "a changed login password")] {
            try withTemporaryDirectory { directory in
                let listener = try PacketListener(at: directory + "/socket")
                let login = try Login(directory + "/socket", user: "nobody", password: "12345", newPassword: "Vespa é")
                    .start("authenticate", step)
                let connection = try listener.acceptOne()
                func exchange(_ reply: [UInt8], descriptorCount: Int = 0) throws -> [UInt8] {
                    try connection.send(reply, until: .after(seconds: 60))
                    var buffer = [UInt8](repeating: 0, count: 4_096)
                    let received = try #require(
                        try connection.receive(into: &buffer, descriptorCount: descriptorCount, until: .after(seconds: 60)))
                    return Array(buffer[..<received.byteCount])
                }
                var hello: [[UInt8]] = []
                Hello(nonce: nonce).message.forEachPacket { hello.append($0) }
                var assembly = MessageAssembly(limit: 1_000)
                let identification = try #require(try assembly.add(try exchange(hello[0], descriptorCount: 1)[...]))
                let parsed = try Identification(parsing: identification)
                #expect(
                    parsed
                        == Identification(nonce: nonce, applicationIdentifier: "pam_keychain", accessGroups: [], isAppClip: false))
                let request = try exchange(vectors.reply("identified"))
                #expect(try vectors.request(name) == [request])
                try connection.send(vectors.reply("done"), until: .after(seconds: 60))
                #expect(try Login.lines(login) == ["authenticate succeeded", "\(step) succeeded"])
            }
        }
    }

    private struct LoginVectors: Decodable {
        struct Vector: Decodable {
            let name: String
            let packets: [Hexadecimal]
        }

        let requests: [Vector]
        let replies: [Vector]

        func request(_ name: String) throws -> [[UInt8]] { try #require(requests.first { $0.name == name }).packets.map(\.bytes) }
        func reply(_ name: String) throws -> [UInt8] { try #require(replies.first { $0.name == name }).packets[0].bytes }
    }

    /// What a service sends in place of what it should.
    enum HostileService: CaseIterable {
        case nothing, emptyPacket, short, otherVersion, otherKind, shortGreeting, newerProtocol, shortFailure, refusal, silence

        var packets: [[UInt8]] {
            let nonce = [UInt8](repeating: 7, count: 16)
            return switch self {
            case .nothing, .silence: []
            case .emptyPacket: [[]]
            case .short: [[1, 1]]
            case .otherVersion: [[2, 1, 0, 0, 18, 0, 0, 0, 1, 1] + nonce]
            case .otherKind: [[1, 5, 0, 0, 0, 0, 0, 0]]
            case .shortGreeting: [[1, 1, 0, 0, 18, 0, 0, 0, 1, 1] + nonce.dropLast()]
            case .newerProtocol: [[1, 1, 0, 0, 18, 0, 0, 0, 2, 3] + nonce]
            case .shortFailure: [[1, 1, 0, 0, 18, 0, 0, 0, 1, 1] + nonce, [1, 4, 0, 0, 4, 0, 0, 0, 0, 255, 0, 0]]
            // Of the identification, with the status of a wrong passcode.
            case .refusal: [[1, 1, 0, 0, 18, 0, 0, 0, 1, 1] + nonce, [1, 4, 0, 0, 6, 0, 0, 0, 0, 255, 0x33, 0x9D, 0xFF, 0xFF]]
            }
        }

        var waits: Bool { [.silence, .shortFailure, .refusal].contains(self) }
    }
}

@Suite("Changing the passcode with the login password", .blocking, .requiresPAM, .requiresRoot)
struct LoginPasswordChangeTests {
    @Test("The passcode changes with the login password that it was")
    func change() throws {
        let service = try LoginTests.lockedService()
        #expect(try Login(service.path, newPassword: "Vespa é 2000").run("change") == ["change succeeded"])
        let client = service.client()
        #expect(try client.sessionStatus().state == .unlocked)
        try client.lock(.everything)
        #expect(failure { try client.unlock(try Passcode(text: "swordfish"), autoLock: .never) }?.refusal == .wrongPasscode)
        try client.unlock(try Passcode(text: "Vespa é 2000"), autoLock: .never)
    }

    @Test("A passcode that is not the former login password stays")
    func otherPasscode() throws {
        let service = try LoginTests.lockedService()
        #expect(try Login(service.path, password: "Druidia", newPassword: "Vespa 2000").run("change") == ["change succeeded"])
        try service.client().unlock(try Passcode(text: "swordfish"), autoLock: .never)
    }

    @Test("Without the former password, as when root sets one, the passcode stays")
    func unknownFormerPassword() throws {
        let service = try LoginTests.lockedService()
        #expect(try Login(service.path, password: nil, newPassword: "Vespa 2000").run("change") == ["change succeeded"])
        try service.client().unlock(try Passcode(text: "swordfish"), autoLock: .never)
    }

    @Test("A login password that may not be a passcode is changed, and the person learns that the passcode was not")
    func refusedPasscode() throws {
        let service = try LoginTests.lockedService()
        let lines = try Login(service.path, newPassword: "123").run("change")
        #expect(lines.last == "change succeeded" && lines.contains { $0.hasPrefix("message: ") })
        try service.client().unlock(try Passcode(text: "swordfish"), autoLock: .never)
    }

    @Test("A login password is changed while keychaind does not reply, and the person learns that the passcode may be the former one")
    func stoppedService() throws {
        let service = try LoginTests.lockedService()
        service.process.send(signal: SIGSTOP)
        defer { service.process.send(signal: SIGCONT) }
        let lines = try Login(service.path, newPassword: "Vespa 2000", timeoutSeconds: 2).run("change")
        #expect(lines.last == "change succeeded" && lines.contains { $0.hasPrefix("message: ") })
    }
}

@Suite("Calls of a login, as keychaind performs them", .blocking)
struct LoginCallTests {
    @Test("Only root acts for another user, and only root changes a passcode")
    func permission() throws {
        let own = geteuid()
        let service = try LoginTests.lockedService()
        service.process.send(signal: SIGTERM)
        _ = try service.process.waitUntilEnded()
        let keychains = UserKeychains(in: service.directory.path + "/keychains")
        let unlock = Call.unlockAtLogin(user: own, try secret("swordfish"))
        let change = Call.changePasscodeAtLogin(user: own, from: try secret("swordfish"), to: try secret("Vespa 2000"))
        let other = LoginCalls(ofProcessOf: own + 1, keychains)
        #expect(failure { _ = try other.perform(unlock) }?.status == .missingEntitlement)
        #expect(failure { _ = try other.perform(change) }?.status == .missingEntitlement)
        #expect(failure { _ = try LoginCalls(ofProcessOf: 61_401, keychains).perform(change) }?.status == .missingEntitlement)
        #expect(try LoginCalls(ofProcessOf: own, keychains).perform(unlock))
        #expect(try LoginCalls(ofProcessOf: 0, keychains).perform(change))
        #expect(failure { _ = try LoginCalls(ofProcessOf: 0, keychains).perform(unlock) }?.refusal == .wrongPasscode)
        #expect(try !LoginCalls(ofProcessOf: 0, keychains).perform(.sessionStatus))
    }

    @Test("A text that is no passcode is refused, and a user without a keychain gets none")
    func refusals() throws {
        try withTemporaryDirectory { directory in
            let calls = LoginCalls(ofProcessOf: 0, UserKeychains(in: directory))
            // Bytes that are no text.
            let other = Call.unlockAtLogin(user: geteuid(), SharedSecretBytes(try unsafe SecretBytes(byteCount: 4) { unsafe $0[0] = 0xFF }))
            #expect(failure { _ = try calls.perform(other) }?.status == .parameter)
            let unlock = Call.unlockAtLogin(user: geteuid(), try secret("12345"))
            #expect(failure { _ = try calls.perform(unlock) }?.status == .itemNotFound)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        }
    }

    private func secret(_ text: String) throws -> SharedSecretBytes {
        // The buffer has as many bytes.
        SharedSecretBytes(try unsafe SecretBytes(byteCount: text.utf8.count) { unsafe $0.copyBytes(from: text.utf8) })
    }
}

extension LoginTests {
    /// A service with the keychain of this user, which has the passcode "swordfish" and is locked.
    static func lockedService() throws -> SpawnedService {
        try SpawnedService { keychain in
            try keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .never)
            try keychain.lock(.everything)
        }
    }
}

/// A program that uses PAM, with the module and the socket of a service.
struct Login {
    private let path: String
    private let user: String?
    private let password: String?
    private let newPassword: String?
    private let timeoutSeconds: Int

    /// `user` is by default the one who runs the test.
    ///
    /// `password` is the login password; nil if the module that changes it does not know it. By default the module waits for longer than on a
    /// machine that is not under load.
    init(_ path: String, user: String? = nil, password: String? = "swordfish", newPassword: String? = nil, timeoutSeconds: Int = 60) {
        self.path = path
        self.user = user
        self.password = password
        self.newPassword = newPassword
        self.timeoutSeconds = timeoutSeconds
    }

    /// Runs steps and returns the lines that the program prints.
    func run(_ steps: String..., typing typed: String? = nil) throws -> [String] {
        let (child, directory) = try start(steps, typed)
        return try withExtendedLifetime(directory) { try Self.lines(child) }
    }

    static func lines(_ started: (child: ChildProcess, configurations: TemporaryDirectory)) throws -> [String] { try lines(started.child) }

    private static func lines(_ child: ChildProcess) throws -> [String] {
        let output = try child.readToEnd()
        // Address Sanitizer ends the program in another way.
        try #require(try child.waitUntilEnded() == .exited(0), "\(output)")
        return output.split(separator: "\n").map(String.init)
    }

    func start(_ steps: String...) throws -> (child: ChildProcess, configurations: TemporaryDirectory) { try start(steps, nil) }

    private func start(
        _ steps: [String], _ typed: String?
    ) throws -> (child: ChildProcess, configurations: TemporaryDirectory) {
        let programs = try LoginPrograms.directory.get().path
        let directory = try TemporaryDirectory()
        let former = password.map { " password=\(Self.masked($0))" } ?? ""
        let new = newPassword.map { " new=\(Self.masked($0))" } ?? ""
        let module = "\(programs)/pam_keychain.so socket=\(path) timeout=\(timeoutSeconds)"
        try """
        auth requisite \(programs)/pam_test_password.so\(former)
        auth optional \(module)
        session required pam_permit.so
        session optional \(module)
        password required \(programs)/pam_test_password.so\(former)\(new)
        password optional \(module)

        """.write(toFile: directory.path + "/test", atomically: true, encoding: .utf8)
        // Otherwise PAM reports that it is missing.
        try "auth required pam_deny.so\n".write(toFile: directory.path + "/other", atomically: true, encoding: .utf8)
        let name = try user ?? ChildProcess.run("/usr/bin/id", ["-un"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
        let child = try ChildProcess(
            programs + "/pam_login", [directory.path, name, Self.masked(typed ?? password ?? "")] + steps)
        return (child, directory)
    }

    /// A text as the programs of the test read it.
    private static func masked(_ text: String) -> String {
        text.utf8.map { byte in
            let digits = String(byte ^ 0x55, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}

/// The module, and the programs of its tests, which are compiled once per test run, with Address Sanitizer.
private enum LoginPrograms {
    struct CompilerFailure: Error {
        let output: String
    }

    static let directory = Result { try compile() }

    private static func compile() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory.untilExit()
        let tests = URL(filePath: #filePath).deletingLastPathComponent()
        let root = tests.deletingLastPathComponent().deletingLastPathComponent()
        try compile(["-shared", "-fPIC", root.path + "/Helpers/pam_keychain.c"], to: directory.path + "/pam_keychain.so")
        try compile(["-shared", "-fPIC", tests.path + "/PAM/pam_test_password.c"], to: directory.path + "/pam_test_password.so")
        try compile(["-rdynamic", tests.path + "/PAM/pam_login.c"], to: directory.path + "/pam_login")
        return directory
    }

    private static func compile(_ arguments: [String], to output: String) throws {
        let compiler = try ChildProcess.run(
            "clang",
            ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-fno-omit-frame-pointer"] + arguments
                + ["-o", output, "-lpam"], environment: ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"])
        guard compiler.ending == .exited(0) else { throw CompilerFailure(output: compiler.output) }
    }
}

extension PacketListener {
    /// Accepts a connection within a minute.
    fileprivate borrowing func acceptOne() throws -> PacketSocket {
        let stop = try WakeupDescriptor()
        guard let socket = try accept(unless: stop.descriptor, until: .after(seconds: 60)) else { throw Errno.timedOut }
        return socket
    }
}
