// SPDX-License-Identifier: Apache-2.0
import Foundation
package import KeychainCore
package import KeychainEngine

/// A keychain under a passcode, as tests need it: cheap to unlock, and its keys gone from the kernel's keyring afterwards.
extension LocalKeychain {
    /// Writes the policy that makes deriving cheap, and uses it.
    ///
    /// What a test derives protects nothing, and 64 MiB in each of many tests at once would be slow.
    package static func cheaplyUnlocked(
        home: String, holder: KeyHolderSelection = .automatic, minimumLength: Int = 4, memoryMebibytes: Int = 1,
        configure: (inout KeychainConfiguration) -> Void = { _ in }
    ) throws -> LocalKeychain {
        let path = home + "/policy.json"
        try #"{"passcodeMinimumLength": \#(minimumLength), "passcodeMemoryMiB": \#(memoryMebibytes)}"#
            .write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return LocalKeychain(home: home) { configuration in
            configuration.policyPath = path
            configuration.acceptsOwnPolicy = true
            configuration.keyHolder = holder
            configure(&configuration)
        }
    }

    package func set(_ passcode: String, autoLock: AutoLock = .standard) throws(KeychainFailure) {
        try setPasscode(try Passcode(text: passcode), autoLock: autoLock)
    }

    package func unlock(with passcode: String, autoLock: AutoLock = .standard) throws(KeychainFailure) {
        try unlock(try Passcode(text: passcode), autoLock: autoLock)
    }

    /// What was held for this store goes, as it would at a restart.
    package func forgetKeys() {
        guard let status = try? sessionStatus(), status.isPasscodeSet else { return }
        try? lock(.everything)
    }
}

extension Passcode {
    package init(text: String) throws(KeychainFailure) {
        let bytes = Array(text.utf8)
        // The bytes are read within the closure.
        self = try unsafe bytes.span.bytes.withUnsafeBytes { (bytes) throws(KeychainFailure) in try unsafe Passcode(typed: bytes) }
    }
}

/// Runs `body` with a keychain in a fresh directory; nothing is left of it, in the file system or in the keyring.
package func withLocalKeychain<Result>(
    holder: KeyHolderSelection = .automatic, _ body: (LocalKeychain, _ home: String) throws -> Result
) throws -> Result {
    try withTemporaryDirectory(inMemory: true) { home in
        let keychain = try LocalKeychain.cheaplyUnlocked(home: home, holder: holder)
        defer { keychain.forgetKeys() }
        return try body(keychain, home)
    }
}
