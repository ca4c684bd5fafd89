// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
internal import KeychainCore

/// The secrets of sandboxed applications, in the keychain.
///
/// Each is a generic password of a service of its own, with the identifier of the application as the account. It is no item of a collection, so
/// the Secret Service does not show it. An application derives keys from its secret, so the secret never changes.
struct ApplicationSecrets {
    private static let byteCount = 64
    /// Collections and their items have the services `collections`, `aliases`, `secrets/…`, and `attributes/…`.
    private static let service = "portal"

    private let keychain: any Keychain

    init(_ keychain: any Keychain) { self.keychain = keychain }

    /// Returns the secret of an application, and makes one for an application that has none.
    ///
    /// Makes none if the keychain cannot be read.
    func secret(of application: String) throws(KeychainFailure) -> Data {
        if let stored = try stored(for: application) { return stored }
        let made = try Self.random()
        // Another process may have stored one at the same moment.
        guard try add(made, for: application) else { return try stored(for: application) ?? made }
        return made
    }

    /// Stores the secret that an application has in another keyring; returns false if the application has one here.
    @discardableResult
    func add(_ secret: Data, for application: String) throws(KeychainFailure) -> Bool {
        do throws(KeychainFailure) {
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword,
                    attributes: query(application).attributes.updated(with: ItemAttributes([.label: .string(application)])),
                    secret: secret, accessControl: AccessControl(.whenUnlocked), authentication: .withoutPrompt))
            return true
        } catch {
            guard error.status == .duplicateItem else { throw error }
            return false
        }
    }

    private func stored(for application: String) throws(KeychainFailure) -> Data? {
        let found = try keychain.matches(
            MatchRequest(query: query(application), includesSecrets: true, failsIfUnreadable: true, authentication: .withoutPrompt))
        guard let item = found.first else { return nil }
        guard let secret = item.secret, !secret.isEmpty else {
            throw KeychainFailure(.decode, "the secret of the application \"\(application)\" is empty")
        }
        return secret
    }

    private func query(_ application: String) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.service: .string(Self.service), .account: .string(application)]))
    }

    private static func random() throws(KeychainFailure) -> Data {
        let bytes = try SecretBytes(randomByteCount: byteCount)
        // The bytes are copied within the closure.
        return unsafe bytes.withBytes { unsafe Data(onHeap: $0) }
    }
}
#endif
