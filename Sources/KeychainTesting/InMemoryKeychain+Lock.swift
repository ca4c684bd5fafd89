// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainEngine
internal import Synchronization

/// The lock of an in-memory keychain, for tests of a program whose items are locked.
///
/// Locking removes the keys, as it does for a keychain in a file. The program under test observes the lock in the results of the
/// `SecItem…` functions and of Valet, and in `KeychainSession.current()`, which in the scope is the session of this keychain. Injected
/// faults do not affect these functions.
extension InMemoryKeychain {
    /// The lock state of a keychain.
    public enum State: Hashable, Sendable {
        /// Not unlocked since the last restart: only items with the accessibility "always" are available.
        case neverUnlocked
        /// Locked after an unlock: items that are accessible after the first unlock are available too.
        case locked
        /// Unlocked, or without a passcode: all items are available.
        case unlocked

        fileprivate init(_ state: LockState) {
            switch state {
            case .neverUnlocked: self = .neverUnlocked
            case .locked: self = .locked
            case .unlocked: self = .unlocked
            }
        }
    }

    /// The current lock state.
    ///
    /// - Throws: An error if the system provides no memory.
    public var state: State {
        get throws { State(try unrestricted.sessionStatus().state) }
    }

    /// Sets the passcode, or replaces the current one, and unlocks the keychain.
    ///
    /// The key derivation uses the lowest cost, because a test's passcode protects nothing.
    ///
    /// - Parameter passcode: The passcode, from 1 to 1,024 bytes. The minimum length of 6 characters applies to the program under test
    ///   only.
    /// - Throws: An error if the passcode is empty or too long, or if the system provides no random bytes or no memory.
    public func setPasscode(_ passcode: String) throws {
        try setOrChangePasscode(try Passcode(text: passcode))
    }

    /// Locks the keychain.
    ///
    /// A keychain without a passcode cannot be locked, so this sets one first if there is none.
    ///
    /// - Parameter includingAfterFirstUnlock: Whether to lock items that are accessible after the first unlock too. The state is then
    ///   ``State/neverUnlocked``.
    /// - Throws: An error if the system provides no random bytes or no memory.
    public func lock(includingAfterFirstUnlock: Bool = false) throws {
        try requirePasscode()
        try unrestricted.lock(includingAfterFirstUnlock ? .everything : .whenUnlocked)
    }

    /// Unlocks the keychain with the current passcode, which the test or the program under test has set.
    ///
    /// Succeeds if the keychain is unlocked already or has no passcode.
    ///
    /// - Throws: An error if the system provides no memory.
    public func unlock() throws {
        guard try unrestricted.sessionStatus().isPasscodeSet else { return }
        try withKnownPasscode { known throws(KeychainFailure) in try unrestricted.unlock(known, autoLock: .standard) }
    }

    /// Removes the keys from memory, as a restart of the system does.
    ///
    /// The state is then ``State/neverUnlocked``.
    ///
    /// Sets a passcode first if there is none.
    ///
    /// - Throws: An error if the system provides no random bytes or no memory.
    public func restart() throws {
        try requirePasscode()
        // Not a lock: the lock epoch does not advance.
        for slot in KeyHolderSlot.ofClassKeys { try storage.holder.remove(slot) }
    }

    /// The current passcode as text; nil if there is none, or if it is unknown.
    func currentPasscodeText() -> String? {
        for entry in storage.passcodes.newestFirst {
            do throws(KeychainFailure) {
                // Checks the passcode and changes nothing.
                _ = try unrestricted.passcodeRemoval(entry.passcode)
                // The bytes are copied within the closure. The passcode of a test is not secret.
                return unsafe entry.passcode.bytes.withBytes { unsafe String(decoding: $0, as: UTF8.self) }
            } catch {
                continue
            }
        }
        return nil
    }

    private func requirePasscode() throws(KeychainFailure) {
        guard try !unrestricted.sessionStatus().isPasscodeSet else { return }
        do throws(KeychainFailure) {
            try unrestricted.setPasscode(try Passcode(text: "made up"), autoLock: .standard)
        } catch {
            // Another thread has set one since.
            guard error.status == .duplicateItem else { throw error }
        }
    }

    private func setOrChangePasscode(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        guard try unrestricted.sessionStatus().isPasscodeSet else { return try unrestricted.setPasscode(passcode, autoLock: .standard) }
        try withKnownPasscode { known throws(KeychainFailure) in
            try unrestricted.changePasscode(from: known, to: passcode, rotatingKeys: false, autoLock: .standard)
        }
    }

    /// Runs `body` with the recorded passcodes, newest first, until one is accepted.
    private func withKnownPasscode(
        _ body: (borrowing Passcode) throws(KeychainFailure) -> Void
    ) throws(KeychainFailure) {
        for entry in storage.passcodes.newestFirst {
            do throws(KeychainFailure) {
                return try body(entry.passcode)
            } catch {
                guard error.refusal == .wrongPasscode else { throw error }
            }
        }
        throw KeychainFailure(.authFailed, "the passcode that is set is not known to the test", refusal: .wrongPasscode)
    }
}

/// The passcodes that the test or the program under test has set, so that the test can unlock the keychain without naming one.
final class PasscodeHistory: Sendable {
    /// A reference to a passcode: arrays cannot contain values that cannot be copied.
    final class Entry: Sendable {
        let passcode: Passcode

        fileprivate init(_ passcode: consuming Passcode) {
            self.passcode = passcode
        }
    }

    private let entries = Mutex<[Entry]>([])

    /// Usually the newest passcode is in force.
    ///
    /// After a change with an unknown outcome it may be the one before.
    var newestFirst: [Entry] { entries.withLock { $0.reversed() } }

    func record(_ passcode: borrowing Passcode) throws(KeychainFailure) {
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
