// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainCore
internal import KeychainEngine

/// The lock of the keychain: whether it is unlocked, unlocking, locking, and the passcode.
///
/// This is not Apple's: on Apple platforms the device is locked and unlocked by its owner, and this type is not there. Elsewhere it
/// does what the lock screen does there. Code for every platform needs none of it: it calls `SecItem…`, and is answered
/// `errSecInteractionNotAllowed` while its items are locked.
///
///     let session = try KeychainSession.current()
///     try session.unlock(passcode: passcode)
///
/// Without a passcode a keychain is always unlocked. What each protection class allows in each state is in <doc:Locking>.
///
/// Every function asks the keychain anew, so an instance can be kept and used from any thread. Deriving a key from a passcode takes
/// time and memory on purpose (64 MiB by default): do not call what takes a passcode on a thread that must answer a person.
public struct KeychainSession: Sendable {
    let provider: any KeychainSessionProviding

    /// The lock of the keychain that `SecItem…` functions called here would use.
    ///
    /// - Returns: The session of that keychain: the user's own, or under test the one of the enclosing scope.
    /// - Throws: ``KeychainSessionError`` with `errSecNotAvailable` when there is no place for a keychain.
    public static func current() throws(KeychainSessionError) -> KeychainSession {
        let keychain = try KeychainSessionError.wrapping { () throws(KeychainFailure) in try DefaultKeychain.current() }
        guard let provider = keychain as? any KeychainSessionProviding else {
            throw KeychainSessionError(KeychainFailure(.unimplemented, "the keychain of this scope has no lock"))
        }
        return KeychainSession(provider: provider)
    }

    /// Whether the keychain's keys are at hand.
    public enum State: Hashable, Sendable {
        /// Not unlocked since the system started, or since everything was locked: only items that are always accessible can be had.
        case neverUnlocked
        /// Locked after an unlock: items that are accessible after the first unlock can be had too.
        case locked
        /// Unlocked, or no passcode is set.
        case unlocked
    }

    /// Where the keys of an unlocked keychain are.
    public enum KeyHolder: Hashable, Sendable {
        /// In the kernel's keyring of this user: all processes of the user see an unlock.
        case kernelKeyring
        /// In the kernel's keyring of a user namespace, as in many containers: an unlock outside it is not seen here.
        case kernelKeyringOfUserNamespace
        /// In this process's memory, because the kernel's keyring cannot be used here: an unlock ends with the process.
        case processMemory
    }

    /// The state at this moment.
    ///
    /// - Throws: ``KeychainSessionError`` with `errSecNotAvailable` when the keychain cannot be asked.
    public var state: State {
        get throws(KeychainSessionError) { State(try status().state) }
    }

    /// Whether a passcode is set.
    ///
    /// - Throws: As ``state``.
    public var isPasscodeSet: Bool {
        get throws(KeychainSessionError) { try status().isPasscodeSet }
    }

    /// Where the keys are while unlocked.
    ///
    /// - Throws: As ``state``.
    public var keyHolder: KeyHolder {
        get throws(KeychainSessionError) { KeyHolder(try status().holder) }
    }

    /// Unlocks the keychain, for all processes of the user unless ``keyHolder`` says otherwise.
    ///
    /// - Parameters:
    ///   - passcode: The passcode. Normalised (Unicode normalisation form C), so that it is the same however it was typed.
    ///   - autoLock: When the keychain locks itself again.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` for a wrong passcode, or when none is set.
    public func unlock(passcode: String, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try unlock(passcode: Data(passcode.utf8), autoLock: autoLock)
    }

    /// Unlocks the keychain with a passcode as UTF-8 bytes, which the caller can wipe.
    ///
    /// - Parameters:
    ///   - passcode: The passcode: UTF-8 text of 1 to 1,024 bytes.
    ///   - autoLock: When the keychain locks itself again.
    /// - Throws: As ``unlock(passcode:autoLock:)-(String,_)``; `errSecParam` for bytes that are not UTF-8.
    public func unlock(passcode: Data, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in
            try provider.unlock(try Passcode(data: passcode), autoLock: autoLock.value)
        }
    }

    /// Locks the keychain for all processes of the user.
    ///
    /// A keychain that is locked already stays so.
    ///
    /// - Parameter includingAfterFirstUnlock: Whether items that are accessible after the first unlock are locked too, as they are by
    ///   a restart.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` when no passcode is set.
    public func lock(includingAfterFirstUnlock: Bool = false) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in try provider.lock(includingAfterFirstUnlock ? .everything : .whenUnlocked) }
    }

    /// When the present unlock ends by itself; nil while locked, or when no passcode is set.
    ///
    /// - Throws: As ``state``.
    public var autoLock: AutoLock? {
        get throws(KeychainSessionError) { try status().autoLock.map(AutoLock.init) }
    }

    /// Changes when the present unlock ends by itself.
    ///
    /// - Parameter autoLock: When the keychain locks itself.
    /// - Throws: ``KeychainSessionError`` with `errSecInteractionNotAllowed` while locked.
    public func setAutoLock(_ autoLock: AutoLock) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in try provider.setAutoLock(autoLock.value) }
    }

    private func status() throws(KeychainSessionError) -> SessionStatus {
        try call { () throws(KeychainFailure) in try provider.sessionStatus() }
    }

    func call<Result>(_ body: () throws(KeychainFailure) -> Result) throws(KeychainSessionError) -> Result {
        try KeychainSessionError.wrapping(body)
    }
}

extension KeychainSession {
    /// When an unlocked keychain locks itself.
    public struct AutoLock: Hashable, Sendable {
        let value: KeychainCore.AutoLock

        init(_ value: KeychainCore.AutoLock) {
            self.value = value
        }

        /// After 15 minutes in which no item was used.
        public static let standard = AutoLock(.standard)

        /// Never by itself: only ``KeychainSession/lock(includingAfterFirstUnlock:)`` or a restart locks it.
        public static let never = AutoLock(.never)

        /// After a time in which no item was used.
        ///
        /// - Parameter seconds: At least 1; less counts as 1.
        /// - Returns: The rule.
        public static func after(seconds: Int) -> AutoLock {
            AutoLock(.after(seconds: UInt32(clamping: max(1, seconds))))
        }

        /// The seconds without use; nil for ``never``.
        public var seconds: Int? { value.seconds.map(Int.init) }
    }
}

extension KeychainSession {
    /// The states that the keychain goes through, whoever changes them: first the present one, then each that differs.
    ///
    /// An application waits for its items with it:
    ///
    ///     for try await state in try KeychainSession.current().stateChanges where state == .unlocked { break }
    ///
    /// A change is seen within half a second. A state that lasts less can be missed. Ends when the task is cancelled; throws
    /// ``KeychainSessionError`` when the keychain cannot be asked any more.
    public var stateChanges: StateChanges { StateChanges(session: self) }

    /// See ``KeychainSession/stateChanges``.
    public struct StateChanges: AsyncSequence, Sendable {
        /// A state of the keychain.
        public typealias Element = State
        /// Why the keychain could not be asked.
        public typealias Failure = any Error

        let session: KeychainSession

        /// Begins with the present state.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator { Iterator(session: session) }

        /// Asks the keychain until its state is another one.
        public struct Iterator: AsyncIteratorProtocol {
            private static let interval = Duration.milliseconds(250)

            private let session: KeychainSession
            private var last: State?

            init(session: KeychainSession) {
                self.session = session
            }

            /// The next state; nil when the task was cancelled.
            ///
            /// - Throws: ``KeychainSessionError`` when the keychain cannot be asked.
            public mutating func next() async throws -> State? {
                while !Task.isCancelled {
                    let state = try session.state
                    if state != last {
                        last = state
                        return state
                    }
                    try? await Task.sleep(for: Self.interval)
                }
                return nil
            }
        }
    }
}

extension KeychainSession.State {
    init(_ state: LockState) {
        switch state {
        case .neverUnlocked: self = .neverUnlocked
        case .locked: self = .locked
        case .unlocked: self = .unlocked
        }
    }
}

extension KeychainSession.KeyHolder {
    init(_ kind: KeyHolderKind) {
        switch kind {
        case .kernelKeyring: self = .kernelKeyring
        case .kernelKeyringOfUserNamespace: self = .kernelKeyringOfUserNamespace
        case .processMemory: self = .processMemory
        }
    }
}

extension Passcode {
    init(data: Data) throws(KeychainFailure) {
        // The bytes are read within the closure.
        self = try unsafe data.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}

/// Why the keychain's lock did not do what was asked.
public struct KeychainSessionError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// One of the status codes of Keychain Services, such as `errSecAuthFailed`.
    public let status: OSStatus
    /// What is wrong, for people; never a secret.
    public let description: String

    /// The same as ``description``.
    public var errorDescription: String? { description }

    init(_ failure: KeychainFailure) {
        status = failure.status.rawValue
        description = failure.reason
    }

    static func wrapping<Result>(
        _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainSessionError) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw KeychainSessionError(error)
        }
    }
}
