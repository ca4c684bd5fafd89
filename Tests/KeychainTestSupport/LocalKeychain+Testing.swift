// SPDX-License-Identifier: Apache-2.0
import Foundation
import FoundationEssentials
import Keybag
package import KeychainCore
package import KeychainEngine

/// Short calls for generic passwords of one service.
extension LocalKeychain {
    /// Opens the keychain below `home` with the entitlements of the tests' child.
    package convenience init(home: String, configure: (inout KeychainConfiguration) -> Void = { _ in }) {
        var configuration = KeychainConfiguration(home: home)
        configure(&configuration)
        self.init(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
    }

    /// Adds an item, with the default accessibility if `accessibility` is nil.
    package func addItem(_ account: String, _ secret: String, _ accessibility: ItemAccessibility? = nil) throws(KeychainFailure) {
        try addItem(account, secret, protectedBy: accessibility.map { AccessControl($0) })
    }

    package func addItem(_ account: String, _ secret: String, protectedBy control: AccessControl?) throws(KeychainFailure) {
        let attributes = ItemAttributes([.account: .string(account), .service: .string("test")])
        _ = try add(
            AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8), accessControl: control))
    }

    /// Reads the secret of an item; throws `.itemNotFound` if there is none.
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

extension KeychainConfiguration {
    /// Makes key derivation as cheap as possible, unless a policy is in the file that stands in for the administrator's.
    ///
    /// The production cost, 64 MiB for each derivation, would take most of the tests' time.
    package mutating func useTestPolicy(in directory: String) {
        policyPath = directory + "/policy.json"
        testPolicy = PasscodePolicy(minimumLength: 4, cost: .lowest)
    }
}

/// Keychains with a passcode for tests: cheap to unlock, and removable from the kernel's keyring.
extension LocalKeychain {
    /// Opens a keychain whose key derivation is cheap; with `policyMebibytes`, sets the cost of its administrator's policy from now on.
    package static func withCheapPasscode(
        home: String, holder: KeyHolderSelection = .automatic, policyMebibytes: Int? = nil,
        configure: (inout KeychainConfiguration) -> Void = { _ in }
    ) throws -> LocalKeychain {
        if let policyMebibytes {
            let path = home + "/policy.json"
            try #"{"passcodeMemoryMiB": \#(policyMebibytes)}"#.write(toFile: path, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
        return LocalKeychain(home: home) { configuration in
            configuration.useTestPolicy(in: home)
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

    /// Removes all held keys of this store, as a restart does.
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

/// Runs `body` with a keychain in a new directory, and removes it from the file system and the keyring afterwards.
package func withLocalKeychain<Result>(
    holder: KeyHolderSelection = .automatic, _ body: (LocalKeychain, _ home: String) throws -> Result
) throws -> Result {
    try withTemporaryDirectory(inMemory: true) { home in
        let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: holder)
        defer { keychain.forgetKeys() }
        return try body(keychain, home)
    }
}
