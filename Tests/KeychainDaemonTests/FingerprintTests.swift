// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import KeychainIPC
@testable import keychaind

@Suite("Fingerprints", .blocking, .requiresLogindMock, .requiresRoot)
struct FingerprintTests {
    @Test("A match opens the item once, and the reader is always released")
    func match() throws {
        let machine = try FingerprintMachine()
        for constraint in [AccessControl.Constraint.biometryAny, .biometryCurrentSet] {
            try machine.add("safe", constraint)
            _ = try machine.fprintd("calls")
            for _ in 0..<2 {
                try machine.fprintd("script", "verify-retry-scan", "verify-too-fast", "verify-match")
                #expect(try machine.read("safe") == "12345")
                #expect(try machine.fprintd("state") == "free")
            }
            let calls = try machine.fprintd("calls").split(separator: " ").filter { $0 != "ListEnrolledFingers" }
            #expect(calls == ["Claim", "VerifyStart", "VerifyStop", "Release", "Claim", "VerifyStart", "VerifyStop", "Release"])
            try machine.client().delete(DeleteRequest(query: .account("safe")))
        }
        #expect(machine.person.questions.allSatisfy { $0.secret == .fingerprint })
    }

    @Test("After five fingers that did not match, the passcode is needed")
    func lockout() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        let mismatches = Array(repeating: "verify-no-match", count: 5)
        try machine.fprintd(["script"] + mismatches)
        #expect(machine.refusal("safe") == .biometryNotRecognized)
        #expect(machine.refusal("safe") == .biometryLockedOut)
        try machine.fprintd("script", "verify-match")
        #expect(machine.refusal("safe") == .biometryLockedOut)
        #expect(machine.canAuthenticate() == .biometryLockedOut)
        #expect(try machine.fprintd("state") == "free")
        try machine.unlock()
        #expect(try machine.read("safe") == "12345")
    }

    @Test("A match sets the count of wrong fingers back, and a canceled prompt does not")
    func count() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        for _ in 0..<3 {
            try machine.fprintd("script", "verify-no-match", "verify-no-match", "verify-match")
            #expect(try machine.read("safe") == "12345")
        }
        for round in 0..<2 {
            // The threads of earlier prompts take no reaction that is meant for this one.
            waitUntil { machine.person.questions.count == 3 + round }
            try machine.fprintd("script", "verify-no-match", "verify-no-match")
            machine.person.then { machine in
                // Two have not matched, and the third scan waits.
                waitUntil { (try? machine.fprintd("waiting")) == "3" }
                return .cancel
            }
            #expect(machine.status("safe") == .userCanceled)
            waitUntil { (try? machine.fprintd("state")) == "free" }
        }
        try machine.fprintd("script", "verify-no-match")
        #expect(machine.refusal("safe") == .biometryLockedOut)
    }

    @Test("A reader that another program uses leaves the passcode, and an item that needs a finger closed")
    func busy() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        try machine.add("presence", .userPresence)
        try machine.fprintd("claim", "true")
        #expect(machine.refusal("safe") == .biometryNotAvailable)
        waitUntil { machine.person.questions.count == 1 }
        machine.person.then { _ in .type(FingerprintMachine.passcode) }
        #expect(try machine.read("presence") == "12345")
        try machine.fprintd("claim", "false")
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("presence") == "12345")
    }

    @Test("An unplugged reader, and an fprintd, or a keychain-fingerprint that ends during a scan, fail the call", arguments: 0..<3)
    func lost(part: Int) throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        machine.person.then { machine in
            waitUntil { (try? machine.fprintd("state")) == "verifying" }
            switch part {
            case 0: _ = try? machine.fprintd("reader", "false")
            case 1: machine.endFprintd()
            default: machine.killProgram()
            }
            return nil
        }
        #expect(machine.refusal("safe") == .biometryNotAvailable)
        if part != 1 { #expect(waitUntil { (try? machine.fprintd("state")) == "free" }) }
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        guard part == 2 else { return }
        try machine.startProgram()
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("safe") == "12345")
    }

    @Test("Another set of fingers loses the items of the former one, and no others")
    func otherFingers() throws {
        let machine = try FingerprintMachine()
        try machine.add("any", .biometryAny)
        try machine.add("set", .biometryCurrentSet)
        let before = try machine.client().biometryStatus()
        #expect(before.hasReader && before.domainState != nil && !before.isExact)
        try machine.fprintd("enroll", "root", "left-thumb", "right-thumb")
        #expect(machine.status("set") == .itemNotFound)
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("any") == "12345")
        #expect(try machine.client().biometryStatus().domainState != before.domainState)
        try machine.fprintd("enroll", "root")
        #expect(machine.canAuthenticate() == .biometryNotEnrolled)
    }

    @Test("The digest of the prints shows that the same finger was enrolled again")
    func enrolledAgain() throws {
        let machine = try FingerprintMachine(digestsPrints: true)
        try machine.writePrint("first")
        try machine.add("any", .biometryAny)
        try machine.add("set", .biometryCurrentSet)
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("set") == "12345")
        #expect(try machine.client().biometryStatus().isExact)
        try machine.writePrint("again")
        #expect(machine.status("set") == .itemNotFound)
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("any") == "12345")
    }

    @Test(
        "A session that is remote, in the background, of a greeter, or without a seat, is not in front of the machine",
        arguments: ["remote", "background", "greeter", "nowhere"])
    func otherSession(place: String) throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        try machine.add("presence", .userPresence)
        try machine.logind("place", "c1", place)
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        #expect(machine.refusal("safe") == .biometryNotAvailable)
        machine.person.then { _ in .type(FingerprintMachine.passcode) }
        #expect(try machine.read("presence") == "12345")
        #expect(machine.person.questions.map(\.secret) == [.passcode])
        try machine.logind("place", "c1", "desk")
        #expect(machine.canAuthenticate() == nil)
    }

    @Test("Without a session in front of the machine, without fprintd, or without its permission there is no biometry")
    func unavailable() throws {
        let machine = try FingerprintMachine()
        #expect(machine.canAuthenticate() == nil)
        try machine.fprintd("deny", "true")
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        try machine.fprintd("deny", "false")
        try machine.logind("remove", "c1")
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        try machine.logind("add", "c2", "0", "wayland")
        #expect(machine.canAuthenticate() == nil)
        machine.endFprintd()
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        #expect(throws: KeychainFailure(.authFailed, "")) { try machine.add("safe", .biometryAny) }
    }
}

/// A person in front of the screen: shows each prompt until the test ends it, unless told to react.
final class PersonAtScreen: PresencePrompter {
    enum Reaction: Sendable {
        case type(String)
        case cancel
    }

    private struct State {
        var reactions: [@Sendable (FingerprintMachine) -> Reaction?] = []
        var questions: [PresenceQuestion] = []
    }

    private let state = Mutex(State())
    private let end = TimedLock()
    // Set before the first prompt.
    private nonisolated(unsafe) weak var machine: FingerprintMachine?
    let canAsk = true

    init() { _ = end.acquire(until: .now) }

    func sit(at machine: FingerprintMachine) { unsafe self.machine = machine }

    var questions: [PresenceQuestion] { state.withLock { $0.questions } }

    func then(_ reaction: @escaping @Sendable (FingerprintMachine) -> Reaction?) { state.withLock { $0.reactions.append(reaction) } }

    func leave() { end.release() }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        let reaction = state.withLock { state in
            state.questions.append(question)
            return state.reactions.isEmpty ? nil : state.reactions.removeFirst()
        }
        guard let reaction, let machine = unsafe machine, let reacted = reaction(machine) else {
            _ = end.acquire(until: .after(seconds: 120))
            end.release()
            throw .canceled
        }
        switch reacted {
        case .cancel: throw .canceled
        case .type(let text):
            let bytes = Array(text.utf8)
            do throws(KeychainFailure) {
                // The text of a test is not secret. The buffer has exactly as many bytes.
                return .secret(try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) })
            } catch {
                throw .failed(error.reason)
            }
        }
    }
}

/// keychaind and keychain-fingerprint on a message bus of their own, with stand-ins for logind and fprintd.
final class FingerprintMachine: @unchecked Sendable {
    // Unchecked: the thread of the prompt uses it while the test waits for the call.
    static let passcode = "swordfish"

    let person = PersonAtScreen()
    let service: SpawnedService
    private let directory: TemporaryDirectory
    private let bus: ChildProcess
    private let reader: ChildProcess
    private let address: String
    private var digests: ChildProcess?
    private var program: ChildProcess?

    init(digestsPrints: Bool = false) throws {
        directory = try TemporaryDirectory()
        let digestSocket = directory.path + "/digest"
        service = try SpawnedService(options: ["--digest-socket", digestSocket, "--watcher-timeout", "60"]) { keychain in
            try keychain.setPasscode(try Passcode(text: Self.passcode), autoLock: .never)
        }
        let sources = URL(filePath: #filePath).deletingLastPathComponent()
        bus = try ChildProcess(
            "/usr/bin/python3", [sources.appending(path: "Logind/logind.py").path, directory.path],
            environment: ["PATH": "/usr/bin:/bin"])
        address = try #require(try bus.readLine())
        reader = try ChildProcess(
            "/usr/bin/python3", [sources.appending(path: "Fprintd/fprintd.py").path, address], environment: ["PATH": "/usr/bin:/bin"])
        try #require(try reader.readLine() == "ready")
        try logind("add", "c1", "\(geteuid())", "wayland")
        try fprintd("enroll", "root", "right-index-finger")
        if digestsPrints { try startDigests() }
        person.sit(at: self)
        try startProgram()
        try unlock()
    }

    deinit { person.leave() }

    /// keychain-fingerprint, for a keychaind at this path.
    func makeProgram(socketPath: String) throws -> ChildProcess {
        try ChildProcess(try HelperProgram.fingerprint.get(), ["--socket=" + socketPath], environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
    }

    func startProgram() throws {
        program = try makeProgram(socketPath: service.path)
        // keychaind knows the program when it can be asked.
        try #require(waitUntil { (try? self.client().biometryStatus().hasReader) == true })
    }

    private var digestSocket: String { directory.path + "/digest" }

    func startDigests() throws {
        digests = try ChildProcess(
            "/usr/bin/systemd-socket-activate",
            [
                "--accept", "--inetd", "--listen", digestSocket, try BuiltProgram.path(of: "keychain-fprint-digest"), "--directory",
                directory.path + "/prints",
            ])
        try #require(waitUntil { FileManager.default.fileExists(atPath: digestSocket) })
    }

    func endDigests(removingSocket: Bool) {
        digests?.send(signal: SIGKILL)
        _ = try? digests?.waitUntilEnded()
        if removingSocket { try? FileManager.default.removeItem(atPath: digestSocket) }
    }

    /// As keychain-watch does when the screen is locked.
    func lockSessions() throws {
        let deadline = Deadline.after(seconds: 60)
        let connection = try DaemonConnection(
            try DaemonClient.connector(toSocketAt: service.path)(deadline), Entitlements(applicationIdentifier: ""), storeID: nil,
            until: deadline)
        _ = connection.exchange(Request(.lockWithSession(user: nil)), until: deadline)
    }

    func killProgram() { program?.send(signal: SIGKILL) }

    func endFprintd() { reader.closeInput() }

    func client() -> DaemonKeychain { service.client(launcher: StubLauncher(person, service.path)) }

    func unlock() throws { try service.client().unlock(try Passcode(text: Self.passcode), autoLock: .never) }

    func add(_ account: String, _ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        _ = try client().add(
            AddRequest(
                itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account)]), secret: Data("12345".utf8),
                accessControl: AccessControl(.whenUnlocked, constraint: constraint)))
    }

    func read(_ account: String) throws(KeychainFailure) -> String { try client().value(of: account) }

    func refusal(_ account: String) -> AuthenticationRefusal? { failure { _ = try self.read(account) }?.refusal }

    func status(_ account: String) -> KeychainStatus? { failure { _ = try self.read(account) }?.status }

    func canAuthenticate() -> AuthenticationRefusal? {
        failure { try self.client().requireCanAuthenticate(.biometryAny, in: nil) }?.refusal
    }

    func writePrint(_ content: String) throws {
        let path = directory.path + "/prints/root/driver/0"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try Data(content.utf8).write(to: URL(filePath: path + "/7"))
    }

    func removePrints() throws { try FileManager.default.removeItem(atPath: directory.path + "/prints") }

    @discardableResult
    func logind(_ words: String...) throws -> String {
        bus.send(words.joined(separator: " "))
        return try #require(try bus.readLine())
    }

    @discardableResult
    func fprintd(_ words: String...) throws -> String { try fprintd(words) }

    @discardableResult
    func fprintd(_ words: [String]) throws -> String {
        reader.send(words.joined(separator: " "))
        return try #require(try reader.readLine())
    }
}
