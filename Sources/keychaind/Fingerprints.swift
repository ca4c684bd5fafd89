// SPDX-License-Identifier: Apache-2.0
internal import Keybag
internal import KeychainCore
internal import KeychainIPC
internal import KeychainSystem
internal import Synchronization

/// The program that verifies fingers with fprintd, because keychaind reads no messages of D-Bus.
///
/// It is believed only about what it was asked: each task has a random nonce, and an answer without a task counts for nothing.
final class Fingerprints: Sendable {
    private struct State {
        var program: Program?
        var pending: [Identifier128: @Sendable (FingerprintAnswer?) -> Void] = [:]
        var users: [UInt32: UserFingerprints] = [:]
    }

    /// The connection of the program.
    private final class Program: Sendable {
        let channel: MessageChannel
        private let sending = Mutex(())

        init(_ channel: MessageChannel) {
            self.channel = channel
        }

        func send(_ reply: Reply) -> Bool {
            sending.withLock { _ in
                do throws(MessageChannel.Failure) {
                    try channel.send(Response(reply).message, until: .after(seconds: 2))
                    return true
                } catch {
                    channel.socket.shutDown()
                    return false
                }
            }
        }
    }

    private let state = Mutex(State())
    private let directory: String
    private let digests: PrintDigests
    private let time: any ContinuousTime

    /// Keeps the secrets of users in a directory.
    init(secretsIn directory: String, _ digests: PrintDigests, time: any ContinuousTime = SystemContinuousTime()) {
        self.directory = directory
        self.digests = digests
        self.time = time
    }

    /// What verifies the fingers of a user.
    func user(_ user: UInt32) -> UserFingerprints {
        state.withLock { state in
            if let known = state.users[user] { return known }
            let made = UserFingerprints(user, self, digests, secretPath: "\(directory)/\(user)", time)
            state.users[user] = made
            return made
        }
    }

    // MARK: The program

    /// Uses a connection until it ends; another one that is in use is ended.
    func serve(_ channel: MessageChannel, sender: Int32, _ buffer: inout MessageChannel.Buffer) throws(MessageChannel.Failure) {
        let program = Program(channel)
        // Before the first task.
        guard program.send(.done) else { return }
        let former = state.withLock { state in
            defer { (state.program, state.pending) = (program, [:]) }
            return (program: state.program, pending: state.pending)
        }
        former.program?.channel.socket.shutDown()
        for handler in former.pending.values { handler(nil) }
        defer { remove(program) }
        let limit = WireProtocol.largestPacketByteCount - WireProtocol.headerByteCount
        while let message = try channel.receive(&buffer, limit: limit, until: .never, isSenderAllowed: { $0.processID == sender }) {
            let answer: FingerprintAnswer
            do throws(MalformedMessage) {
                guard case .fingerprintAnswer(let received) = try Request(parsing: message).call else { throw MalformedMessage() }
                answer = received
            } catch {
                throw .malformed
            }
            // An answer with another nonce was not asked for.
            state.withLock { $0.pending.removeValue(forKey: answer.nonce) }?(answer)
        }
    }

    private func remove(_ program: Program) {
        let abandoned = state.withLock { state -> [@Sendable (FingerprintAnswer?) -> Void] in
            guard state.program === program else { return [] }
            state.program = nil
            defer { state.pending = [:] }
            return Array(state.pending.values)
        }
        for handler in abandoned { handler(nil) }
    }

    // MARK: Tasks

    /// Sends a task, and calls `onAnswer` once: with nil if the program ends before.
    ///
    /// Returns false if there is no program.
    fileprivate func begin(_ task: FingerprintTask, _ onAnswer: @escaping @Sendable (FingerprintAnswer?) -> Void) -> Bool {
        let program = state.withLock { state in
            if state.program != nil { state.pending[task.nonce] = onAnswer }
            return state.program
        }
        guard let program else { return false }
        if program.send(.fingerprintTask(task)) { return true }
        // Unless the end of the connection has called it.
        return state.withLock { $0.pending.removeValue(forKey: task.nonce) } == nil
    }

    fileprivate func cancel(_ task: FingerprintTask) {
        let program = state.withLock { $0.pending[task.nonce] == nil ? nil : $0.program }
        _ = program?.send(.fingerprintTask(FingerprintTask(nonce: task.nonce, kind: .cancel, user: task.user)))
    }

    /// Performs a task that needs no person; returns nil without an answer in time.
    fileprivate func answer(to task: FingerprintTask, until deadline: Deadline) -> FingerprintAnswer? {
        let isAnswered = TimedLock()
        _ = isAnswered.acquire(until: .now)
        let received = SharedAnswer()
        let isBegun = begin(task) { answer in
            received.value.withLock { $0 = answer }
            isAnswered.release()
        }
        guard isBegun, isAnswered.acquire(until: deadline) else {
            state.withLock { _ = $0.pending.removeValue(forKey: task.nonce) }
            return nil
        }
        return received.value.withLock { $0 }
    }

    private final class SharedAnswer: Sendable {
        let value = Mutex<FingerprintAnswer?>(nil)
    }
}

/// What verifies the fingers of one user, and decides whether fingerprints count at all.
final class UserFingerprints: BiometryVerifier {
    /// After so many fingers that did not match, the passcode is needed.
    static let largestMismatchCount: UInt8 = 5
    /// The most fingers for one prompt.
    private static let largestAttemptCount: UInt8 = 3
    /// The passcode is needed after this time without it.
    static let passcodeLifetimeNanoseconds: UInt64 = 48 * 3_600 * 1_000_000_000

    private struct State {
        var scan: FingerprintTask?
        var mismatchCount: UInt8 = 0
        /// Nil before the passcode was entered since keychaind has started.
        var passcodeNanoseconds: UInt64?
    }

    private let user: UInt32
    private unowned let fingerprints: Fingerprints
    private let digests: PrintDigests
    private let secretPath: String
    private let time: any ContinuousTime
    private let state = Mutex(State())
    private let secretLock = Mutex(())
    /// Held from the beginning of a scan to its answer, so that all fingers which did not match are counted before the next one begins.
    private let scanTurn = TimedLock()

    fileprivate init(
        _ user: UInt32, _ fingerprints: Fingerprints, _ digests: PrintDigests, secretPath: String, _ time: any ContinuousTime
    ) {
        self.user = user
        self.fingerprints = fingerprints
        self.digests = digests
        self.secretPath = secretPath
        self.time = time
    }

    func passcodeWasEntered() {
        let now = time.nowNanoseconds()
        state.withLock { state in
            state.mismatchCount = 0
            state.passcodeNanoseconds = now
        }
    }

    /// Ends the scan that goes on: the reader is for the lock screen now.
    func sessionWasLocked() {
        guard let task = state.withLock({ $0.scan }) else { return }
        fingerprints.cancel(task)
    }

    /// How many fingers may still not match; nil if the passcode is needed first.
    private var remainingAttemptCount: UInt8? {
        let now = time.nowNanoseconds()
        return state.withLock { state in
            guard let entered = state.passcodeNanoseconds, now &- entered < Self.passcodeLifetimeNanoseconds,
                state.mismatchCount < Self.largestMismatchCount
            else { return nil }
            return Self.largestMismatchCount - state.mismatchCount
        }
    }

    func availability() -> BiometryAvailability {
        let task = FingerprintTask(nonce: .random(), kind: .inspect, user: user)
        guard let answer = fingerprints.answer(to: task, until: .after(seconds: 5)) else {
            return .notAvailable("keychain-fingerprint does not run, or does not answer")
        }
        guard answer.result == .success else { return Self.unavailability(answer.result) }
        guard remainingAttemptCount != nil else { return .lockedOut }
        guard let set = set(of: answer) else { return Self.hasNoDigest }
        return .available(set)
    }

    private static var hasNoDigest: BiometryAvailability { .notAvailable("the set of enrolled fingers cannot be read") }

    private func set(of answer: FingerprintAnswer) -> FingerprintSet? {
        guard !answer.fingers.isEmpty else { return nil }
        return digests.set(ofUser: user, reader: answer.reader, fingers: answer.fingers)
    }

    private static func unavailability(_ result: FingerprintAnswer.Result) -> BiometryAvailability {
        switch result {
        case .notEnrolled: .notEnrolled
        case .noReader: .notAvailable("there is no fingerprint reader")
        case .noService: .notAvailable("fprintd does not run, or does not permit keychaind to use it")
        case .busy: .notAvailable("another program is using the fingerprint reader")
        case .noLocalSession: .notAvailable("the user has no session in front of this machine")
        case .disconnected: .notAvailable("the fingerprint reader was unplugged")
        case .success, .noMatch, .timedOut, .canceled, .failed: .notAvailable("fprintd has failed")
        }
    }

    func secret() throws(KeychainFailure) -> SharedSecretBytes {
        let result = secretLock.withLock { _ in
            Result { () throws(KeychainFailure) in
                let path = secretPath
                if try !PrivateFile.isPresent(path, subject: Self.secretSubject) {
                    try PrivateDirectory.make(FileSystem.parent(of: path))
                    // Whole or not at all, also after a power cut.
                    let new = path + ".new"
                    FileSystem.tryUnlink(new)
                    try PrivateFile.create(
                        new, contents: SecretBytes(randomByteCount: BiometricKeys.secretByteCount), subject: Self.secretSubject)
                    try PrivateFile.renameWithoutReplacing(new, to: path, subject: Self.secretSubject)
                }
                return try readSecret()
            }
        }
        return try result.get()
    }

    func presentSecret() throws(KeychainFailure) -> SharedSecretBytes? {
        try PrivateFile.isPresent(secretPath, subject: Self.secretSubject) ? readSecret() : nil
    }

    private static let secretSubject = "the secret of biometric keys"

    private func readSecret() throws(KeychainFailure) -> SharedSecretBytes {
        let secret = try PrivateFile.read(secretPath, byteLimit: BiometricKeys.secretByteCount, subject: Self.secretSubject)
        guard secret.byteCount == BiometricKeys.secretByteCount else {
            throw KeychainFailure(.notAvailable, "\(Self.secretSubject) \(secretPath) has a wrong size", cause: .malformed)
        }
        return SharedSecretBytes(secret)
    }

    // MARK: Scans

    func beginScan(
        timeoutSeconds: UInt32, onEnd: @escaping @Sendable (BiometricScanOutcome) -> Void
    ) throws(KeychainFailure) -> any BiometricScan {
        // One that was canceled ends soon.
        guard scanTurn.acquire(until: .after(seconds: 5)) else {
            throw Self.failure(.notAvailable("the scan before has not ended"))
        }
        guard let remaining = remainingAttemptCount else {
            scanTurn.release()
            throw Self.failure(.lockedOut)
        }
        let task = FingerprintTask(
            nonce: .random(), kind: .verify, user: user, attemptCount: min(remaining, Self.largestAttemptCount),
            timeoutSeconds: timeoutSeconds)
        let scan = Scan(task, fingerprints)
        state.withLock { $0.scan = task }
        let isBegun = fingerprints.begin(task) { [self] answer in
            // Counted also if the scan was canceled: otherwise a program could cancel before the last attempt, and begin again.
            count(answer, of: task)
            endTurn()
            guard !scan.isCanceled else { return }
            // The digest is read on another thread, so that other answers do not wait for it.
            if !BackgroundThread.start({ onEnd(self.outcome(answer)) }) {
                onEnd(.refused(KeychainFailure(.allocate, "there is no thread for the end of a scan")))
            }
        }
        guard isBegun else {
            endTurn()
            throw Self.failure(.notAvailable("keychain-fingerprint does not run"))
        }
        return scan
    }

    private func endTurn() {
        state.withLock { $0.scan = nil }
        scanTurn.release()
    }

    /// Without an answer, every attempt may have been one that did not match.
    private func count(_ answer: FingerprintAnswer?, of task: FingerprintTask) {
        state.withLock { state in
            if answer?.result == .success {
                state.mismatchCount = 0
            } else {
                state.mismatchCount = UInt8(clamping: Int(state.mismatchCount) + Int(answer?.mismatchCount ?? task.attemptCount))
            }
        }
    }

    private func outcome(_ answer: FingerprintAnswer?) -> BiometricScanOutcome {
        guard let answer else { return .refused(Self.failure(.notAvailable("keychain-fingerprint has ended"))) }
        switch answer.result {
        case .success:
            guard let set = set(of: answer) else { return .refused(Self.failure(Self.hasNoDigest)) }
            return .matched(set)
        case .noMatch:
            guard remainingAttemptCount != nil else { return .refused(Self.failure(.lockedOut)) }
            return .refused(KeychainFailure(.authFailed, "the finger was not recognized", refusal: .biometryNotRecognized))
        case .timedOut: return .refused(KeychainFailure(.interactionNotAllowed, "no finger was scanned in time", refusal: .timedOut))
        case .canceled: return .refused(KeychainFailure(.authFailed, "the session was locked during the scan", refusal: .timedOut))
        case let result: return .refused(Self.failure(Self.unavailability(result)))
        }
    }

    private static func failure(_ availability: BiometryAvailability) -> KeychainFailure {
        availability.failure ?? .biometryNotAvailable()
    }

    private final class Scan: BiometricScan {
        private let task: FingerprintTask
        private let fingerprints: Fingerprints
        private let canceled = Atomic(false)

        init(_ task: FingerprintTask, _ fingerprints: Fingerprints) {
            self.task = task
            self.fingerprints = fingerprints
        }

        var isCanceled: Bool { canceled.load(ordering: .sequentiallyConsistent) }

        func cancel() {
            guard !canceled.exchange(true, ordering: .sequentiallyConsistent) else { return }
            fingerprints.cancel(task)
        }
    }
}

/// Asks keychain-fprint-digest, which runs as root, for the digests of prints.
struct PrintDigests: Sendable {
    /// The socket; without it, the names of the enrolled fingers stand for the prints.
    let path: String

    /// Returns the set of a user's fingers; nil if keychain-fprint-digest is installed and fails.
    func set(ofUser user: UInt32, reader: String, fingers: [String]) -> FingerprintSet? {
        let namesDigest = FingerprintDigest.ofNames(reader: reader, fingers: fingers)
        guard FileSystem.exists(path) else { return FingerprintSet(printsDigest: nil, namesDigest: namesDigest) }
        let deadline = Deadline.after(seconds: 5)
        do throws(Errno) {
            let socket = try LocalSocket(.path(path), until: deadline)
            var request: [UInt8] = []
            request.append(littleEndian: user)
            try socket.send(request, until: deadline)
            let digest = try socket.receive(byteCount: FingerprintSet.digestByteCount, until: deadline)
            return FingerprintSet(printsDigest: digest, namesDigest: namesDigest)
        } catch {
            return nil
        }
    }
}
