// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import KeychainCore

extension KeychainSession {
    /// Sets the first passcode, and leaves the keychain unlocked.
    ///
    /// The passcode then protects the items of all classes except `kSecAttrAccessibleAlways` and
    /// `kSecAttrAccessibleAlwaysThisDeviceOnly`. Creates the keychain if it does not exist. The change is atomic, even if the process ends.
    ///
    /// - Parameters:
    ///   - passcode: UTF-8 text with at least the number of characters that the administrator requires (6, unless
    ///     `/etc/keychain/policy.json` sets another number) and at most 1,024 bytes.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: ``KeychainSessionError`` with `errSecParam` for a passcode that is too short or not UTF-8, or `errSecDuplicateItem` if a
    ///   passcode is already set.
    public func setPasscode(_ passcode: Data, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in
            try provider.setPasscode(try Passcode(data: passcode), autoLock: autoLock.value)
        }
    }

    /// Sets the first passcode, as text.
    ///
    /// - Parameters:
    ///   - passcode: As ``setPasscode(_:autoLock:)-(Data,_)``.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: The errors of ``setPasscode(_:autoLock:)-(Data,_)``.
    public func setPasscode(_ passcode: String, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try setPasscode(Data(passcode.utf8), autoLock: autoLock)
    }

    /// Replaces the passcode, and leaves the keychain unlocked.
    ///
    /// - Parameters:
    ///   - current: The current passcode.
    ///   - new: The new passcode, with the rules of ``setPasscode(_:autoLock:)-(Data,_)``.
    ///   - rotatingKeys: Whether to replace the class keys and encrypt every item again. Pass true if another person may have known the
    ///     old passcode.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` if `current` is wrong or no passcode is set, or `errSecParam` if the new
    ///   passcode is not valid.
    public func changePasscode(
        from current: Data, to new: Data, rotatingKeys: Bool = false, autoLock: AutoLock = .standard
    ) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in
            try provider.changePasscode(
                from: try Passcode(data: current), to: try Passcode(data: new), rotatingKeys: rotatingKeys,
                autoLock: autoLock.value)
        }
    }

    /// Replaces the passcode, as text.
    ///
    /// - Parameters:
    ///   - current: The current passcode.
    ///   - new: The new passcode.
    ///   - rotatingKeys: Whether to replace the class keys and encrypt every item again.
    ///   - autoLock: The rule for locking the keychain automatically.
    /// - Throws: The errors of ``changePasscode(from:to:rotatingKeys:autoLock:)-(Data,_,_,_)``.
    public func changePasscode(
        from current: String, to new: String, rotatingKeys: Bool = false, autoLock: AutoLock = .standard
    ) throws(KeychainSessionError) {
        try changePasscode(from: Data(current.utf8), to: Data(new.utf8), rotatingKeys: rotatingKeys, autoLock: autoLock)
    }

    /// An item that is deleted with the passcode: its accessibility is `kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly`.
    public struct PasscodeItem: Hashable, Sendable {
        /// The service or server; nil if the item cannot be read.
        public let service: String?
        /// The account; nil if the item cannot be read.
        public let account: String?
    }

    /// Removes the passcode and deletes the items that require one, after confirmation.
    ///
    /// - Parameters:
    ///   - passcode: The current passcode.
    ///   - isAgreed: A closure that receives the items of all programs that will be deleted, possibly none, and returns whether to
    ///     proceed. If another such item is added after the call of the closure, nothing changes and the function throws.
    /// - Returns: True if the passcode was removed; false if `isAgreed` returned false.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` if the passcode is wrong or none is set.
    @discardableResult
    public func removePasscode(
        _ passcode: Data, deletingIf isAgreed: ([PasscodeItem]) -> Bool
    ) throws(KeychainSessionError) -> Bool {
        try call { () throws(KeychainFailure) in
            let passcode = try Passcode(data: passcode)
            let removal = try provider.passcodeRemoval(passcode)
            guard isAgreed(removal.items.map { PasscodeItem(service: $0.name?.service, account: $0.name?.account) }) else { return false }
            try provider.removePasscode(passcode, deleting: removal)
            return true
        }
    }

    /// Removes the passcode, given as text, and deletes the items that require one, after confirmation.
    ///
    /// - Parameters:
    ///   - passcode: The current passcode.
    ///   - isAgreed: A closure as in ``removePasscode(_:deletingIf:)-(Data,_)``.
    /// - Returns: Whether the passcode was removed.
    /// - Throws: The errors of ``removePasscode(_:deletingIf:)-(Data,_)``.
    @discardableResult
    public func removePasscode(
        _ passcode: String, deletingIf isAgreed: ([PasscodeItem]) -> Bool
    ) throws(KeychainSessionError) -> Bool {
        try removePasscode(Data(passcode.utf8), deletingIf: isAgreed)
    }
}
