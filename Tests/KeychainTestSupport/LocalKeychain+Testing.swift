// SPDX-License-Identifier: Apache-2.0
import Foundation
import FoundationEssentials
package import KeychainCore
package import KeychainEngine

/// The shortest way to an item of a keychain in a file, failures and their reasons included.
extension LocalKeychain {
    /// The keychain below `home`, seen by the program that the tests start as a child.
    package convenience init(home: String, configure: (inout KeychainConfiguration) -> Void = { _ in }) {
        var configuration = KeychainConfiguration(home: home)
        configure(&configuration)
        self.init(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
    }

    /// Nil adds it with the class that items have when none is named.
    package func addItem(_ account: String, _ secret: String, _ accessibility: Accessibility? = nil) throws(KeychainFailure) {
        try addItem(account, secret, protectedBy: accessibility.map { AccessControl($0) })
    }

    package func addItem(_ account: String, _ secret: String, protectedBy control: AccessControl?) throws(KeychainFailure) {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("test")])
        _ = try add(
            AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8), accessControl: control))
    }

    /// Throws `.itemNotFound` when there is none.
    package func secret(
        of account: String, _ authentication: Authentication = Authentication(interaction: .forbidden)
    ) throws(KeychainFailure) -> String {
        let items = try copyMatching(
            MatchRequest(query: Self.query(account), includesSecrets: true, authentication: authentication))
        return String(decoding: items.first?.secret ?? Data(), as: UTF8.self)
    }

    package func updateItem(_ account: String, to secret: String) throws(KeychainFailure) {
        try update(UpdateRequest(query: Self.query(account), secret: Data(secret.utf8)))
    }

    package func deleteItem(_ account: String) throws(KeychainFailure) {
        try delete(DeleteRequest(query: Self.query(account)))
    }

    private static func query(_ account: String) -> ItemQuery {
        ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account), .service: .string("test")]))
    }
}

/// A keychain under a passcode, as tests need it: cheap to unlock, and its keys gone from the kernel's keyring afterwards.
extension LocalKeychain {
    /// Writes the policy that makes deriving cheap, and uses it.
    ///
    /// What a test derives protects nothing, and 64 MiB in each of many tests at once would be slow.
    package static func withCheapPasscode(
        home: String, holder: KeyHolderSelection = .automatic, minimumLength: Int = 4, memoryMebibytes: Int = 1,
        configure: (inout KeychainConfiguration) -> Void = { _ in }
    ) throws -> LocalKeychain {
        let path = home + "/policy.json"
        try #"{"passcodeMinimumLength": \#(minimumLength), "passcodeMemoryMiB": \#(memoryMebibytes)}"#
            .write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return LocalKeychain(home: home) { configuration in
            configuration.policyPath = path
            configuration.acceptsUserOwnedPolicy = true
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
        let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: holder)
        defer { keychain.forgetKeys() }
        return try body(keychain, home)
    }
}
