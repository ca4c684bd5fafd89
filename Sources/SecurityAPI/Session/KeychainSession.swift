// SPDX-License-Identifier: Apache-2.0
public import Foundation
internal import KeychainCore
internal import KeychainEngine

/// The lock state and the passcode of the keychain.
///
/// This type does not exist on Apple platforms, where the lock screen has its role. Code for all platforms does not need it: the SecItem
/// functions return `errSecInteractionNotAllowed` while their items are locked.
///
///     let session = try KeychainSession.current()
///     try session.unlock(passcode: passcode)
///
/// A keychain without a passcode is always unlocked. <doc:Locking> describes what each protection class allows in each state.
///
/// Instances cache no state and can be used from any thread. Deriving a key from a passcode takes time and memory on purpose (64 MiB by
/// default), so do not call functions with a passcode on the main thread of an application.
public struct KeychainSession: Sendable {
    let provider: any KeychainSessionProviding

    /// Returns the session of the keychain that SecItem functions use in the current context.
    ///
    /// - Returns: The session of the user's keychain, or in a test that of the enclosing scope.
    /// - Throws: ``KeychainSessionError`` with `errSecNotAvailable` if no folder for a keychain can be determined.
    public static func current() throws(KeychainSessionError) -> KeychainSession {
        let keychain = try KeychainSessionError.wrapping { () throws(KeychainFailure) in try DefaultKeychain.current() }
        guard let provider = keychain as? any KeychainSessionProviding else {
            throw KeychainSessionError(KeychainFailure(.unimplemented, "the keychain of this scope has no lock"))
        }
        return KeychainSession(provider: provider)
    }

    /// The lock state of a keychain.
    public enum State: Hashable, Sendable {
        /// Not unlocked since the system started or everything was locked: only items that are always accessible are available.
        case neverUnlocked
        /// Locked after an unlock: items that are accessible after the first unlock are available too.
        case locked
        /// Unlocked, or no passcode is set.
        case unlocked
    }

    /// The location of the keys of an unlocked keychain.
    public enum KeyHolder: Hashable, Sendable {
        /// The kernel keyring of this user: an unlock applies to all processes of the user that can open the keychain.
        case kernelKeyring
        /// The kernel keyring of a user namespace, as in many containers: an unlock applies to processes in the namespace only.
        case kernelKeyringOfUserNamespace
        /// The memory of this process, because the kernel keyring cannot be used: an unlock ends with the process.
        case processMemory
        /// The memory of the service keychaind, which keeps the keychain: an unlock applies to all processes of the user.
        case keychaind
    }

    /// The current state.
    ///
    /// A keychain that does not exist yet is unlocked, if the key file, the credential, or the TPM that it would use is available.
    ///
    /// - Throws: ``KeychainSessionError`` with `errSecNotAvailable` if the keychain or its key cannot be read.
    public var state: State {
        get throws(KeychainSessionError) { State(try status().state) }
    }

    /// Whether a passcode is set.
    ///
    /// - Throws: The errors of ``state``.
    public var isPasscodeSet: Bool {
        get throws(KeychainSessionError) { try status().isPasscodeSet }
    }

    /// The location of the keys while the keychain is unlocked.
    ///
    /// - Throws: The errors of ``state``.
    public var keyHolder: KeyHolder {
        get throws(KeychainSessionError) { KeyHolder(try status().holder) }
    }

    /// Unlocks the keychain for the processes that ``keyHolder`` specifies, normally all processes of the user.
    ///
    /// - Parameters:
    ///   - passcode: The passcode. It is normalized (Unicode normalization form C), so that input methods make no difference.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` if the passcode is wrong or none is set.
    public func unlock(passcode: String, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try unlock(passcode: Data(passcode.utf8), autoLock: autoLock)
    }

    /// Unlocks the keychain with a passcode in UTF-8 bytes, which the caller can wipe.
    ///
    /// - Parameters:
    ///   - passcode: The passcode: UTF-8 text of 1 to 1,024 bytes.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: The errors of ``unlock(passcode:autoLock:)-(String,_)``, and `errSecParam` for bytes that are not UTF-8.
    public func unlock(passcode: Data, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in
            try provider.unlock(try Passcode(data: passcode), autoLock: autoLock.value)
        }
    }

    /// Locks the keychain for all processes of the user.
    ///
    /// Does nothing if the keychain is already locked.
    ///
    /// - Parameter includingAfterFirstUnlock: Whether items that are accessible after the first unlock are locked too, as after a restart.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` if no passcode is set.
    public func lock(includingAfterFirstUnlock: Bool = false) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in try provider.lock(includingAfterFirstUnlock ? .everything : .whenUnlocked) }
    }

    /// The rule for locking the keychain automatically; nil while it is locked, or if no passcode is set.
    ///
    /// - Throws: The errors of ``state``.
    public var autoLock: AutoLock? {
        get throws(KeychainSessionError) { try status().autoLock.map(AutoLock.init) }
    }

    /// Sets the rule for locking the keychain automatically.
    ///
    /// - Parameter autoLock: The rule.
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
    /// The rule for locking an unlocked keychain automatically.
    public struct AutoLock: Hashable, Sendable {
        let value: KeychainCore.AutoLock

        init(_ value: KeychainCore.AutoLock) {
            self.value = value
        }

        /// Locks after 15 minutes without use of an item.
        public static let standard = AutoLock(.standard)

        /// Never locks automatically: only ``KeychainSession/lock(includingAfterFirstUnlock:)`` or a restart locks the keychain.
        public static let never = AutoLock(.never)

        /// Locks after a time without use of an item.
        ///
        /// - Parameter seconds: The time in seconds; values below 1 count as 1.
        /// - Returns: The rule.
        public static func after(seconds: Int) -> AutoLock {
            AutoLock(.after(seconds: UInt32(clamping: max(1, seconds))))
        }

        /// The time without use in seconds; nil for ``never``.
        public var seconds: Int? { value.seconds.map(Int.init) }
    }
}

extension KeychainSession {
    /// A sequence of the current state of the keychain and each later change, by any process.
    ///
    /// An application can use it to wait for its items:
    ///
    ///     for try await state in try KeychainSession.current().stateChanges where state == .unlocked { break }
    ///
    /// The sequence polls the keychain and reports a change within half a second. It can miss a state of shorter duration. It ends when the
    /// task is canceled, and throws ``KeychainSessionError`` if the keychain cannot be read.
    public var stateChanges: StateChanges { StateChanges(session: self) }

    /// The sequence of ``KeychainSession/stateChanges``.
    public struct StateChanges: AsyncSequence, Sendable {
        /// A state of the keychain.
        public typealias Element = State
        /// The error if the keychain cannot be read.
        public typealias Failure = any Error

        let session: KeychainSession

        /// Returns an iterator that begins with the current state.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator { Iterator(session: session) }

        /// An iterator that polls the keychain until its state differs.
        public struct Iterator: AsyncIteratorProtocol {
            private static let interval = Duration.milliseconds(250)

            private let session: KeychainSession
            private var last: State?

            init(session: KeychainSession) {
                self.session = session
            }

            /// Waits for the next state.
            ///
            /// - Returns: The state, or nil if the task is canceled.
            /// - Throws: ``KeychainSessionError`` if the keychain cannot be read.
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
        case .keychaind: self = .keychaind
        }
    }
}

extension Passcode {
    init(data: Data) throws(KeychainFailure) {
        // The bytes are used within the closure only.
        self = try unsafe data.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}

/// The error of a ``KeychainSession`` call.
public struct KeychainSessionError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// A status code of Keychain Services, such as `errSecAuthFailed`.
    public let status: OSStatus
    /// A description for people; never contains a secret.
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
            try ForkDetection.requireNotForked()
            return try body()
        } catch {
            throw KeychainSessionError(error)
        }
    }
}
