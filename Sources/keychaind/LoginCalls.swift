// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainEngine
internal import KeychainIPC

/// The calls of the PAM module, about the keychain of a user who logs in or changes the login password.
///
/// They name the user, because the module runs as root in most programs, and need no signpost, because the home directory may not be mounted yet.
struct LoginCalls {
    private let peer: UInt32
    private let keychains: UserKeychains

    /// `peer` is the user of the process that calls.
    init(ofProcessOf peer: UInt32, _ keychains: UserKeychains) {
        self.peer = peer
        self.keychains = keychains
    }

    /// Performs a call; returns false if it is another one.
    ///
    /// Throws `.itemNotFound` if there is no keychain of the user, and `.authFailed` if the password is not its passcode.
    func perform(_ call: Call) throws(KeychainFailure) -> Bool {
        switch call {
        case .unlockAtLogin(let user, let password):
            // Programs of the user may unlock the keychain in any case, and some lock screens run as the user.
            guard peer == 0 || peer == user else { throw Self.notPermitted }
            let passcode = try Passcode(typed: password)
            try keychains.withKeychainInUse(ofUser: user) { keychain throws(KeychainFailure) in
                try keychain.unlock(passcode, autoLock: try Self.autoLock(of: keychain))
            }
        case .changePasscodeAtLogin(let user, let current, let new):
            // `passwd` runs as root. Programs of the user must not lock the user out.
            guard peer == 0 else { throw Self.notPermitted }
            let former = try Passcode(typed: current)
            let passcode = try Passcode(typed: new)
            try keychains.withKeychainInUse(ofUser: user) { keychain throws(KeychainFailure) in
                try keychain.changePasscode(from: former, to: passcode, rotatingKeys: false, autoLock: try Self.autoLock(of: keychain))
            }
        default: return false
        }
        return true
    }

    /// The automatic lock that the user has chosen, while the keychain is unlocked, else the standard one.
    private static func autoLock(of keychain: LocalKeychain) throws(KeychainFailure) -> AutoLock {
        try keychain.sessionStatus().autoLock ?? .standard
    }

    private static var notPermitted: KeychainFailure {
        KeychainFailure(.missingEntitlement, "only root may do this, or unlock the keychain of another user")
    }
}

extension Passcode {
    fileprivate init(typed password: SharedSecretBytes) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        self = try unsafe password.secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}
