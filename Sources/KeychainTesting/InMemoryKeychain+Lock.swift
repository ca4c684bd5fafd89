// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

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
#endif
