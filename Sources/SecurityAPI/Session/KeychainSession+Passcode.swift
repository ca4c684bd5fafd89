// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import KeychainCore

extension KeychainSession {
    /// Sets the first passcode, and leaves the keychain unlocked.
    ///
    /// From then on the items of every class but `kSecAttrAccessibleAlways` and `kSecAttrAccessibleAlwaysThisDeviceOnly` are under the passcode. A keychain
    /// that does not exist yet is made. Should the process end in between, either no passcode is set or it is.
    ///
    /// - Parameters:
    ///   - passcode: UTF-8 text of at least as many characters as the administrator asks for (6 unless `/etc/keychain/policy.json`
    ///     says otherwise) and at most 1,024 bytes.
    ///   - autoLock: When the keychain locks itself.
    /// - Throws: ``KeychainSessionError`` with `errSecParam` for a passcode that is too short or not UTF-8, `errSecDuplicateItem`
    ///   when one is set.
    public func setPasscode(_ passcode: Data, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try call { () throws(KeychainFailure) in
            try provider.setPasscode(try Passcode(data: passcode), autoLock: autoLock.value)
        }
    }

    /// Sets the first passcode, as text.
    ///
    /// - Parameters:
    ///   - passcode: As ``setPasscode(_:autoLock:)-(Data,_)``.
    ///   - autoLock: When the keychain locks itself.
    /// - Throws: As ``setPasscode(_:autoLock:)-(Data,_)``.
    public func setPasscode(_ passcode: String, autoLock: AutoLock = .standard) throws(KeychainSessionError) {
        try setPasscode(Data(passcode.utf8), autoLock: autoLock)
    }

    /// Replaces the passcode, and leaves the keychain unlocked.
    ///
    /// - Parameters:
    ///   - current: The passcode that is set.
    ///   - new: The one to set; the rules are those of ``setPasscode(_:autoLock:)-(Data,_)``.
    ///   - rotatingKeys: Whether the class keys are made anew too, and every item sealed again: for when somebody else may have
    ///     known the old passcode.
    ///   - autoLock: When the keychain locks itself.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` when `current` is wrong or none is set, `errSecParam` for a new
    ///   one that is refused.
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
    ///   - current: The passcode that is set.
    ///   - new: The one to set.
    ///   - rotatingKeys: Whether the class keys are made anew too.
    ///   - autoLock: When the keychain locks itself.
    /// - Throws: As ``changePasscode(from:to:rotatingKeys:autoLock:)-(Data,_,_,_)``.
    public func changePasscode(
        from current: String, to new: String, rotatingKeys: Bool = false, autoLock: AutoLock = .standard
    ) throws(KeychainSessionError) {
        try changePasscode(from: Data(current.utf8), to: Data(new.utf8), rotatingKeys: rotatingKeys, autoLock: autoLock)
    }

    /// An item that goes when the passcode goes: its accessibility is `kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly`.
    public struct PasscodeItem: Hashable, Sendable {
        /// Its service, or its server; nil when the item cannot be read.
        public let service: String?
        /// Its account; nil when the item cannot be read.
        public let account: String?
    }

    /// Removes the passcode, and deletes the items that cannot be without one, after asking.
    ///
    /// - Parameters:
    ///   - passcode: The passcode that is set.
    ///   - isAgreed: Gets the items of all programs that will be deleted, perhaps none, and tells whether to go on. An item that
    ///     comes after it was asked is not deleted: then nothing changes and an error says so.
    /// - Returns: Whether the passcode was removed: what `isAgreed` answered.
    /// - Throws: ``KeychainSessionError`` with `errSecAuthFailed` when the passcode is wrong or none is set.
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

    /// Removes the passcode, as text, and deletes the items that cannot be without one, after asking.
    ///
    /// - Parameters:
    ///   - passcode: The passcode that is set.
    ///   - isAgreed: As in ``removePasscode(_:deletingIf:)-(Data,_)``.
    /// - Returns: Whether the passcode was removed.
    /// - Throws: As ``removePasscode(_:deletingIf:)-(Data,_)``.
    @discardableResult
    public func removePasscode(
        _ passcode: String, deletingIf isAgreed: ([PasscodeItem]) -> Bool
    ) throws(KeychainSessionError) -> Bool {
        try removePasscode(Data(passcode.utf8), deletingIf: isAgreed)
    }
}
