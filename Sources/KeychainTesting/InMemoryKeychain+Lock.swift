// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// The lock of an in-memory keychain, for tests of what a program does while its items cannot be had.
///
/// It is a real lock: the keys are gone. The program under test sees it in what `SecItem…` functions and Valet answer, and in
/// `KeychainSession.current()`, which inside the scope is this keychain's. Faults do not concern what a test does here.
extension InMemoryKeychain {
    /// Whether the keychain's keys are at hand.
    public enum State: Hashable, Sendable {
        /// As after a restart: only items that are always accessible can be had.
        case neverUnlocked
        /// Locked after an unlock: items that are accessible after the first unlock can be had too.
        case locked
        /// Unlocked, or no passcode is set.
        case unlocked

        fileprivate init(_ state: LockState) {
            switch state {
            case .neverUnlocked: self = .neverUnlocked
            case .locked: self = .locked
            case .unlocked: self = .unlocked
            }
        }
    }

    /// The state at this moment.
    ///
    /// - Throws: An error when the system gives no memory.
    public var state: State {
        get throws { State(try control.sessionStatus().state) }
    }

    /// Sets a passcode, in the place of the one that is set, and unlocks the keychain.
    ///
    /// It is as cheap to derive from as possible, since it protects nothing.
    ///
    /// - Parameter passcode: From 1 to 1,024 bytes: the program under test must give 6 characters, as elsewhere; the test need not.
    /// - Throws: An error for an empty or too long passcode, or when the system gives no random bytes or no memory.
    public func setPasscode(_ passcode: String) throws {
        try control.setOrChangePasscode(try Passcode(text: passcode))
    }

    /// Locks the keychain.
    ///
    /// Where no passcode is set, one is made up first, since without one nothing can be locked.
    ///
    /// - Parameter includingAfterFirstUnlock: Whether items that are accessible after the first unlock are locked too.
    /// - Throws: An error when the system gives no random bytes or no memory.
    public func lock(includingAfterFirstUnlock: Bool = false) throws {
        try control.requirePasscode()
        try control.lock(includingAfterFirstUnlock ? .everything : .whenUnlocked)
    }

    /// Unlocks the keychain with the passcode that is set, whoever has set it; unlocked already is success.
    ///
    /// - Throws: An error when the system gives no memory.
    public func unlock() throws {
        try control.unlockWithKnownPasscode()
    }

    /// Does to the keychain what a restart of the system does: its state is then `neverUnlocked`.
    ///
    /// Where no passcode is set, one is made up first.
    ///
    /// - Throws: An error when the system gives no random bytes or no memory.
    public func restart() throws {
        try control.requirePasscode()
        try control.forgetKeys()
    }
}

/// What a test does to the keychain of the program under test.
extension MemoryKeychain {
    /// Sets a passcode where none is set.
    func requirePasscode() throws(KeychainFailure) {
        guard try !sessionStatus().isPasscodeSet else { return }
        do throws(KeychainFailure) {
            try setPasscode(try Passcode(text: "made up"), autoLock: .standard)
        } catch {
            // Set by another thread since.
            guard error.status == .duplicateItem else { throw error }
        }
    }

    func setOrChangePasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        guard try sessionStatus().isPasscodeSet else { return try setPasscode(passcode, autoLock: .standard) }
        try withKnownPasscode { known throws(KeychainFailure) in
            try changePasscode(from: known, to: passcode, rotatingKeys: false, autoLock: .standard)
        }
    }

    func unlockWithKnownPasscode() throws(KeychainFailure) {
        guard try sessionStatus().isPasscodeSet else { return }
        try withKnownPasscode { known throws(KeychainFailure) in try unlock(known, autoLock: .standard) }
    }

    /// No lock is counted: a restart takes what is in memory, and nothing else.
    func forgetKeys() throws(KeychainFailure) {
        for slot in KeyHolderSlot.ofClassKeys { try parts.holder.remove(slot) }
    }

    private func withKnownPasscode(
        _ body: (borrowing Passcode) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        for entry in parts.passcodes.newestFirst {
            do throws(KeychainFailure) {
                return try body(entry.passcode)
            } catch {
                guard error.status == .authFailed else { throw error }
            }
        }
        throw KeychainFailure(.authFailed, "the passcode that is set is not known to the test")
    }
}

extension MemoryKeychain {
    /// The passcode that is set, as text; nil where none is, or where it is not known to the test.
    func currentPasscodeText() -> String? {
        for entry in parts.passcodes.newestFirst {
            do throws(KeychainFailure) {
                // It is checked there, and nothing is changed.
                _ = try passcodeRemoval(entry.passcode)
                // The bytes are copied within the closure; the passcode of a test is no secret.
                return unsafe entry.passcode.bytes.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
            } catch {
                continue
            }
        }
        return nil
    }
}

/// The passcodes that an in-memory keychain was given, by its test or by the program under test, so that the test can unlock it
/// without naming one.
final class PasscodeHistory: Sendable {
    /// What an array can hold.
    final class Entry: Sendable {
        let passcode: Passcode

        fileprivate init(_ passcode: consuming Passcode) {
            self.passcode = passcode
        }
    }

    private let entries = Mutex<[Entry]>([])

    /// The newest one is the likeliest to be in force; a change whose outcome is unknown leaves two to try.
    var newestFirst: [Entry] { entries.withLock { $0.reversed() } }

    func note(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        let bytes = try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        let entry = Entry(try Passcode(normalized: bytes))
        entries.withLock { $0.append(entry) }
    }
}

extension Passcode {
    /// A passcode that a test names.
    init(text: String) throws(KeychainFailure) {
        let bytes = Array(text.utf8)
        // The bytes are read within the closure.
        self = try unsafe bytes.span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}
#endif
