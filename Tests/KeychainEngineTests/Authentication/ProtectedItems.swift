// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting

/// A keychain with a passcode, a scripted person, and items that require authentication.
struct ProtectedItems {
    static let passcode = "swordfish"

    let keychain: any Keychain & KeychainSessionProviding & KeychainAuthenticating
    let person: ScriptedPresencePrompter

    /// Runs `body` on a keychain in memory, and on one in a file.
    static func inEveryKeychain(withPasscode: Bool = true, _ body: (ProtectedItems) throws -> Void) throws {
        let memory = try InMemoryKeychain()
        let inMemory = ProtectedItems(keychain: memory.keychain, person: memory.prompter)
        if withPasscode { try inMemory.setPasscode() }
        try body(inMemory)
        try inFile(withPasscode: withPasscode) { items, _ in try body(items) }
    }

    static func inFile(
        withPasscode: Bool = true, holder: KeyHolderSelection = .processMemory, _ body: (ProtectedItems, LocalKeychain) throws -> Void
    ) throws {
        try withLocalKeychain(holder: holder) { keychain, _ in
            let person = ScriptedPresencePrompter()
            var configuration = try keychain.configuration()
            configuration.presencePrompter = person
            let local = LocalKeychain(configuration: configuration, entitlements: keychain.entitlements)
            let items = ProtectedItems(keychain: local, person: person)
            if withPasscode { try items.setPasscode() }
            try body(items, local)
        }
    }

    func setPasscode() throws {
        try keychain.setPasscode(try Passcode(text: Self.passcode), autoLock: .standard)
    }

    @discardableResult
    func add(
        _ account: String = "safe", _ constraint: AccessControl.Constraint? = .userPresence,
        _ accessibility: ItemAccessibility = .whenPasscodeSetThisDeviceOnly, secret: String = "12345",
        authentication: Authentication = Authentication()
    ) throws(KeychainFailure) -> KeychainItem {
        try keychain.add(
            AddRequest(
                itemClass: .genericPassword, attributes: ItemAttributes([.service: .string("Druidia"), .account: .string(account)]),
                secret: Data(secret.utf8), accessControl: AccessControl(accessibility, constraint: constraint),
                authentication: authentication))
    }

    func query(_ account: String? = "safe") -> ItemQuery {
        var attributes = ItemAttributes([.service: .string("Druidia")])
        if let account { attributes[.account] = .string(account) }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    func read(
        _ account: String? = "safe", limit: Int? = 1, includesSecrets: Bool = true, _ authentication: Authentication = Authentication()
    ) throws(KeychainFailure) -> [String] {
        try keychain.copyMatching(
            MatchRequest(query: query(account), limit: limit, includesSecrets: includesSecrets, authentication: authentication)
        ).map { item in item.secret.map { String(decoding: $0, as: UTF8.self) } ?? "" }
    }

    func status(_ body: () throws(KeychainFailure) -> Void) -> KeychainStatus {
        do throws(KeychainFailure) {
            try body()
            return .success
        } catch {
            return error.status
        }
    }

    /// Returns the result of a read.
    func readStatus(_ account: String = "safe", _ authentication: Authentication = Authentication()) -> KeychainStatus {
        status { () throws(KeychainFailure) in _ = try read(account, authentication) }
    }
}

extension Authentication {
    static let forbidden = Authentication(interaction: .forbidden)
    static let skipping = Authentication(interaction: .skippingItems)
}

extension ApplicationPassword {
    struct NoMemory: Error {}

    static func given(_ text: String) throws -> ApplicationPassword {
        // The bytes are read within the closure.
        let password = unsafe Array(text.utf8).withUnsafeBytes { unsafe ApplicationPassword(given: $0) }
        guard let password else { throw NoMemory() }
        return password
    }
}
