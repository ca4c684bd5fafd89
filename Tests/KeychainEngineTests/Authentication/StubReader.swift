// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Synchronization

/// A fingerprint reader whose person is the test.
final class StubReader: BiometryVerifier {
    private struct State {
        var availability = BiometryAvailability.available(StubReader.set(1))
        var isBusy = false
        var onEnd: (@Sendable (BiometricScanOutcome) -> Void)?
        var scanCount = 0
        var canceledCount = 0
        var passcodeCount = 0
    }

    private let state = Mutex(State())
    private let wrappingSecret: Mutex<[UInt8]>

    init(secret: UInt8 = 7) {
        wrappingSecret = Mutex(Array(repeating: secret, count: 32))
    }

    /// The prints with a number; `names` stands for the names of the fingers, and alone if there are no prints.
    static func set(_ number: UInt8?, names: UInt8 = 0) -> FingerprintSet {
        FingerprintSet(
            printsDigest: number.map { Array(repeating: $0, count: 32) }, namesDigest: Array(repeating: names, count: 32))
    }

    func enroll(_ number: UInt8) { state.withLock { $0.availability = .available(Self.set(number)) } }
    func become(_ availability: BiometryAvailability) { state.withLock { $0.availability = availability } }
    func beBusy(_ isBusy: Bool) { state.withLock { $0.isBusy = isBusy } }
    func replaceSecret(by byte: UInt8) { wrappingSecret.withLock { $0 = Array(repeating: byte, count: 32) } }

    var scanCount: Int { state.withLock { $0.scanCount } }
    var canceledCount: Int { state.withLock { $0.canceledCount } }
    var passcodeCount: Int { state.withLock { $0.passcodeCount } }

    /// Ends the present scan; nil: with a match of the enrolled fingers.
    func touch(_ outcome: BiometricScanOutcome? = nil) {
        let (onEnd, availability) = state.withLock { state in
            defer { state.onEnd = nil }
            return (state.onEnd, state.availability)
        }
        var outcome = outcome
        if case .available(let set) = availability { outcome = outcome ?? .matched(set) }
        if let outcome { onEnd?(outcome) }
    }

    func availability() -> BiometryAvailability { state.withLock { $0.availability } }

    func secret() throws(KeychainFailure) -> SharedSecretBytes {
        let bytes = wrappingSecret.withLock { $0 }
        // The secret of a test is not secret. The buffer has exactly as many bytes.
        return SharedSecretBytes(try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) })
    }

    func presentSecret() throws(KeychainFailure) -> SharedSecretBytes? { try secret() }

    func beginScan(
        timeoutSeconds: UInt32, onEnd: @escaping @Sendable (BiometricScanOutcome) -> Void
    ) throws(KeychainFailure) -> any BiometricScan {
        let isBusy = state.withLock { state in
            state.onEnd = onEnd
            state.scanCount += 1
            return state.isBusy
        }
        guard !isBusy else { throw BiometryAvailability.notAvailable("it is in use").failure ?? .biometryNotAvailable() }
        return Scan(reader: self)
    }

    private struct Scan: BiometricScan {
        let reader: StubReader

        func cancel() {
            reader.state.withLock { state in
                guard state.onEnd != nil else { return }
                state.onEnd = nil
                state.canceledCount += 1
            }
        }
    }

    func passcodeWasEntered() { state.withLock { $0.passcodeCount += 1 } }
}

/// A person in front of a reader, who reacts to each prompt as the test says.
final class TouchingPerson: PresencePrompter {
    enum Reaction: Sendable {
        /// Touches the reader, and does something else only if the prompt stays.
        case touch(BiometricScanOutcome? = nil)
        case type(String)
        case cancel
        case perform(@Sendable () -> Void)
    }

    private let reader: StubReader
    private let state = Mutex<(reactions: ArraySlice<Reaction>, questions: [PresenceQuestion])>(([], []))

    init(_ reader: StubReader) {
        self.reader = reader
    }

    func then(_ reactions: Reaction...) { state.withLock { $0.reactions += reactions } }

    var questions: [PresenceQuestion] { state.withLock { $0.questions } }
    var canAsk: Bool { state.withLock { !$0.reactions.isEmpty } }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer { try ask(question, endedBy: PromptEnd()) }

    func ask(_ question: PresenceQuestion, endedBy end: PromptEnd) throws(PresenceRefusal) -> PresenceAnswer {
        state.withLock { $0.questions.append(question) }
        while let reaction = state.withLock({ $0.reactions.popFirst() }) {
            switch reaction {
            case .touch(let outcome):
                reader.touch(outcome)
                if end.isEnded { throw .failed("the prompt was ended") }
            case .perform(let body): body()
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
        throw .promptUnavailable("the test has no person")
    }
}
