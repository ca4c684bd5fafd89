// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import SecurityAPI
import Synchronization
import Testing
import Valet

@testable import KeychainIPC
@testable import keychaind

/// Forged and unasked results, parts that are lost, and programs that use biometry through keychaind.
@Suite("Fingerprints that count for nothing", .blocking, .requiresLogindMock, .requiresRoot)
struct FingerprintAttackTests {
    @Test("A match that another process of the message bus reports is ignored")
    func forgedMatch() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        machine.person.then { machine in
            waitUntil { (try? machine.fprintd("state")) == "verifying" }
            _ = try? machine.fprintd("forge", "verify-match")
            _ = try? machine.fprintd("emit", "verify-disconnected")
            return nil
        }
        #expect(machine.refusal("safe") == .biometryNotAvailable)
    }

    @Test("While the session is locked, a finger is for the lock screen")
    func lockedSession() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        machine.person.then { machine in
            waitUntil { (try? machine.fprintd("state")) == "verifying" }
            _ = try? machine.logind("locked", "c1", "true")
            _ = try? machine.fprintd("emit", "verify-match")
            return nil
        }
        #expect(machine.refusal("safe") == .biometryNotAvailable)
        #expect(machine.canAuthenticate() == .biometryNotAvailable)
        try machine.logind("locked", "c1", "false")
        #expect(machine.canAuthenticate() == nil)
    }

    @Test("A lock ends a scan, and the reader is free for the lock screen")
    func lockDuringScan() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        machine.person.then { machine in
            waitUntil { (try? machine.fprintd("state")) == "verifying" }
            try? machine.lockSessions()
            return nil
        }
        #expect(machine.refusal("safe") == .timedOut)
        #expect(try machine.fprintd("state") == "free")
    }

    @Test("keychaind ignores a result without a task, with another nonce, and after the first")
    func otherNonce() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        machine.killProgram()
        let deadline = Deadline.after(seconds: 60)
        let connection = try DaemonConnection(
            try DaemonClient.connector(toSocketAt: machine.service.path)(deadline), Entitlements(applicationIdentifier: ""), storeID: nil,
            until: deadline)
        guard case .response = connection.exchange(Request(.serveFingerprints), until: deadline) else {
            Issue.record("keychaind does not accept the program")
            return
        }
        @Sendable func answer(_ nonce: Identifier128, _ result: FingerprintAnswer.Result) throws {
            try connection.send(
                Request(
                    .fingerprintAnswer(
                        FingerprintAnswer(
                            nonce: nonce, result: result, mismatchCount: 0, reader: "Reader of the test", fingers: ["right-index-finger"]))),
                until: deadline)
        }
        try answer(.random(), .success)
        let verified = Mutex(0)
        let isStarted = BackgroundThread.start {
            while case .fingerprintTask(let task)? = try? connection.nextReply(until: deadline) {
                guard task.kind == .verify else {
                    try? answer(task.nonce, .success)
                    continue
                }
                verified.withLock { $0 += 1 }
                try? answer(.random(), .success)
                try? answer(task.nonce, .noMatch)
                try? answer(task.nonce, .success)
            }
        }
        try #require(isStarted)
        #expect(machine.refusal("safe") == .biometryNotRecognized)
        #expect(verified.withLock(\.self) == 1)
        connection.shutDown()
    }

    @Test("If the program that calls ends during a scan, the reader is released")
    func callerEnds() throws {
        let machine = try FingerprintMachine()
        try machine.add("safe", .biometryAny)
        let deadline = Deadline.after(seconds: 60)
        let connector = DaemonClient.connector(toSocketAt: machine.service.path)
        let agent = try PresenceAgent(connector, .ownProcess)
        let person = machine.person
        try #require(BackgroundThread.start { agent.run(person) })
        let caller = try DaemonConnection(
            try connector(deadline), Entitlements(applicationIdentifier: "app"), storeID: machine.service.storeID, until: deadline)
        let search = MatchRequest(query: .account("safe"), limit: 1, includesSecrets: true)
        try caller.send(Request(.copyMatching(search), asksOwnAgentsOnly: true), until: deadline)
        #expect(try waitUntil { try machine.fprintd("state") == "verifying" })
        caller.shutDown()
        #expect(try waitUntil { try machine.fprintd("state") == "free" })
        agent.end()
    }

    @Test("If keychain-fprint-digest does not answer, or is gone, nothing opens and nothing is lost")
    func withoutDigest() throws {
        let machine = try FingerprintMachine(digestsPrints: true)
        try machine.writePrint("first")
        try machine.add("set", .biometryCurrentSet)
        try machine.removePrints()
        #expect(machine.refusal("set") == .biometryNotAvailable)
        try machine.writePrint("first")
        machine.endDigests(removingSocket: false)
        #expect(machine.refusal("set") == .biometryNotAvailable)
        machine.endDigests(removingSocket: true)
        #expect(machine.refusal("set") == .biometryNotAvailable)
        try machine.startDigests()
        try machine.fprintd("script", "verify-match")
        #expect(try machine.read("set") == "12345")
    }

    @Test("A finger counts for 48 hours after the passcode, and not before it")
    func passcodeLifetime() throws {
        try withTemporaryDirectory { directory in
            let time = ManualTime()
            let fingerprints = Fingerprints(secretsIn: directory, PrintDigests(path: directory + "/none"), time: time)
            let user = fingerprints.user(7)
            func refusal() -> AuthenticationRefusal? { failure { _ = try user.beginScan(timeoutSeconds: 1) { _ in } }?.refusal }
            #expect(refusal() == .biometryLockedOut)
            user.passcodeWasEntered()
            // There is no program.
            #expect(refusal() == .biometryNotAvailable)
            time.pass(nanoseconds: UserFingerprints.passcodeLifetimeNanoseconds - 1)
            #expect(refusal() == .biometryNotAvailable)
            time.pass(nanoseconds: 1)
            #expect(refusal() == .biometryLockedOut)
        }
    }

    @Test("A secret that was not written whole is refused, and not replaced")
    func cutSecret() throws {
        try withTemporaryDirectory { directory in
            let user = Fingerprints(secretsIn: directory, PrintDigests(path: directory + "/none")).user(7)
            let made = try user.secret().secret.byteCount
            #expect(made == 32)
            let path = directory + "/7"
            try Data([1, 2, 3]).write(to: URL(filePath: path))
            #expect(throws: KeychainFailure(.notAvailable, "")) { try user.secret() }
            #expect(FileManager.default.contents(atPath: path) == Data([1, 2, 3]))
        }
    }

    // MARK: Scans

    @Test("A reader that is not touched is released after the time of the prompt")
    func deadline() throws {
        let machine = try FingerprintMachine()
        let reader = try DirectReader(machine)
        let outcome = try reader.scan(timeoutSeconds: 1) {}
        guard case .refused(let failure) = outcome else { return #expect(Bool(false), "\(outcome)") }
        #expect(failure.refusal == .timedOut && failure.status == .interactionNotAllowed)
        #expect(try machine.fprintd("state") == "free")
    }

    @Test("A match that waits in the queue when its scan is canceled does not count for the next scan")
    func matchOfEarlierScan() throws {
        let machine = try FingerprintMachine()
        let reader = try DirectReader(machine)
        let canceled = try reader.user.beginScan(timeoutSeconds: 60) { _ in }
        #expect(try waitUntil { try machine.fprintd("state") == "verifying" })
        try reader.withStoppedProgram {
            // So many that the next scan begins before the program has looked at all of them.
            for _ in 0..<1_000 { try machine.fprintd("emit", "verify-retry-scan") }
            try machine.fprintd("emit", "verify-match")
            canceled.cancel()
        }
        let outcome = try reader.scan(timeoutSeconds: 60) {
            #expect(try waitUntil { try machine.fprintd("state") == "verifying" })
            try machine.fprintd("emit", "verify-disconnected")
        }
        guard case .refused(let failure) = outcome else { return #expect(Bool(false), "\(outcome)") }
        #expect(failure.refusal == .biometryNotAvailable)
    }

    // MARK: Programs

    @Test(
        "Biometric valets store and read, and LAContext tells the truth",
        arguments: [SecureEnclaveAccessControl.biometricAny, .biometricCurrentSet])
    func valet(accessControl: SecureEnclaveAccessControl) throws {
        let machine = try FingerprintMachine()
        try CurrentKeychain.with(machine.client()) {
            let valet = SecureEnclaveValet.valet(with: try #require(Identifier(nonEmpty: "Druidia")), accessControl: accessControl)
            #expect(valet.canAccessKeychain())
            try valet.setString("12345", forKey: "combination")
            #expect(try valet.containsObject(forKey: "combination"))
            try machine.fprintd("script", "verify-match")
            #expect(try valet.string(forKey: "combination", withPrompt: "open the safe") == "12345")
            #expect(machine.person.questions.map(\.reason) == ["open the safe"])
            let context = LAContext()
            // The error pointer may be nil.
            let isPossible = unsafe context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
            #expect(isPossible && context.biometryType == .touchID)
            let state = try #require(context.evaluatedPolicyDomainState)
            try machine.fprintd("enroll", "root", "left-thumb")
            _ = unsafe context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: nil)
            #expect(context.evaluatedPolicyDomainState != state)
        }
    }

    @Test("A program that meets the signpost with its first call has biometry")
    func signpost() throws {
        let machine = try FingerprintMachine()
        try withTemporaryDirectory { home in
            let signpost = Signpost(storeID: try #require(machine.service.storeID))
            let path = home + "/keychain.db"
            try #require(
                FileManager.default.createFile(
                    atPath: path, contents: Data(signpost.encoded), attributes: [.posixPermissions: 0o600]))
            func program() -> UserKeychain {
                UserKeychain(LocalKeychain(home: home), connector: DaemonClient.connector(toSocketAt: machine.service.path))
            }
            #expect(try program().biometryStatus().hasReader)
            _ = try program().add(
                AddRequest(
                    itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("safe")]), secret: Data("12345".utf8),
                    accessControl: AccessControl(.whenUnlocked, constraint: .biometryAny)))
            // Only without a finger that is enrolled.
            try machine.fprintd("enroll", "root")
            let failure = failure { try program().requireCanAuthenticate(.biometryAny, in: nil) }
            #expect(failure?.refusal == .biometryNotEnrolled)
        }
    }
}

/// The reader without the calls of keychaind, which look for it before each scan.
private final class DirectReader {
    let user: UserFingerprints
    private let fingerprints: Fingerprints
    private let directory: TemporaryDirectory
    private let service: InProcessService
    private let program: ChildProcess

    init(_ machine: FingerprintMachine) throws {
        directory = try TemporaryDirectory()
        fingerprints = Fingerprints(secretsIn: directory.path, PrintDigests(path: directory.path + "/none"))
        service = try InProcessService(keychainsIn: directory.path, fingerprints: fingerprints)
        program = try machine.makeProgram(socketPath: service.path)
        user = fingerprints.user(geteuid())
        user.passcodeWasEntered()
        waitUntil { user.availability().failure == nil }
    }

    deinit { program.send(signal: SIGKILL) }

    /// Scans a finger, and returns how that ends.
    func scan(timeoutSeconds: UInt32, _ react: () throws -> Void) throws -> BiometricScanOutcome {
        let outcome = Mutex<BiometricScanOutcome?>(nil)
        let scan = try user.beginScan(timeoutSeconds: timeoutSeconds) { ended in outcome.withLock { $0 = ended } }
        defer { scan.cancel() }
        try react()
        waitUntil { outcome.withLock { $0 != nil } }
        let ended = outcome.withLock { $0 }
        return try #require(ended)
    }

    /// Stops the program while `body` runs, so that it finds all that happens then at once.
    func withStoppedProgram(_ body: () throws -> Void) throws {
        program.send(signal: SIGSTOP)
        defer { program.send(signal: SIGCONT) }
        let path = "/proc/\(program.processID)/stat"
        try #require(waitUntil { (try? String(contentsOfFile: path, encoding: .utf8))?.contains(") T ") == true })
        try body()
    }
}
