// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("A prepared query makes the requests of the SecItem functions")
struct PreparedQueryTests {
    private static let queries: [Unchecked] = [
        genericPassword([kSecAttrService: "s"]),
        genericPassword([kSecAttrService: "s", kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessGroup: "g"]),
        genericPassword([kSecAttrService: "s", kSecAttrSynchronizable: true, kSecUseDataProtectionKeychain: true]),
        genericPassword([kSecAttrService: "s", kSecAttrSynchronizable: kSecAttrSynchronizableAny, kSecAttrLabel: Data([1])]),
        internetPassword([kSecAttrServer: "s", kSecAttrPort: 443]),
    ].map(Unchecked.init)

    /// The requests of `body`, and its status.
    private func requests(_ body: () -> OSStatus) -> (OSStatus, String) {
        let keychain = RecordingKeychain()
        let status = CurrentKeychain.with(keychain, body)
        return (status, String(describing: keychain.requests))
    }

    /// Checks that two calls have the same status and make the same requests.
    private func expectSame(_ prepared: () -> OSStatus, _ function: () -> OSStatus, _ location: SourceLocation = #_sourceLocation) {
        let (status, made) = requests(prepared)
        let (expectedStatus, expected) = requests(function)
        #expect(status == expectedStatus, sourceLocation: location)
        #expect(made == expected, sourceLocation: location)
    }

    private func query(_ query: Unchecked) throws -> [String: Any] { try #require(query.any as? [String: Any]) }

    @Test("Searches and deletions", arguments: queries)
    func searches(unchecked: Unchecked) throws {
        let all = try query(unchecked)
        let one = all.merging([kSecAttrAccount: "a"]) { _, new in new }
        let context = LAContext()
        for options in [[:], [kSecUseAuthenticationContext: context], [kSecUseAuthenticationUI: kSecUseAuthenticationUISkip]] {
            let full = one.merging(options) { _, new in new }
            let prepared = PreparedQuery(all).forAccount("a")
            expectSame({ prepared.search(options) }, { SecItemCopyMatching(full, nil) })
            expectSame({ prepared.copySecret(options).0 }, { SecItemCopyMatching(full.merging([kSecReturnData: true]) { $1 }, nil) })
        }
        expectSame({ PreparedQuery(all).forAccount("a").delete() }, { SecItemDelete(one) })
        expectSame({ PreparedQuery(all).delete() }, { SecItemDelete(all) })
    }

    @Test("Additions and updates", arguments: queries)
    func writes(unchecked: Unchecked) throws {
        let all = try query(unchecked)
        let one = all.merging([kSecAttrAccount: "a"]) { _, new in new }
        let prepared = PreparedQuery(all).forAccount("a")
        for accessControl in [nil, try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)] {
            var values: [String: Any] = [kSecValueData: Data([1, 2])]
            values[kSecAttrAccessControl] = accessControl
            expectSame({ prepared.add(Data([1, 2]), accessControl: accessControl) }, { SecItemAdd(one.merging(values) { $1 }, nil) })
            let context: [String: Any] = [kSecUseAuthenticationContext: LAContext()]
            for options in [[:], context] {
                expectSame(
                    { prepared.update(Data([1, 2]), accessControl: accessControl, options) },
                    { SecItemUpdate(one.merging(options) { $1 }, values) })
            }
        }
    }

    @Test("The secret is nil if the item has none")
    func secrets() {
        let query = PreparedQuery(genericPassword())
        for secret in [nil, Data(), Data([1])] {
            let found = CurrentKeychain.with(RecordingKeychain(items: [.password(secret: secret)])) { query.copySecret([:]) }
            #expect(found == (errSecSuccess, secret))
        }
        #expect(CurrentKeychain.with(RecordingKeychain(items: [])) { query.copySecret([:]) } == (errSecItemNotFound, nil))
    }

    @Test("A listing has the accounts alone, and nil for one that is not the UTF-8 bytes of a string")
    func accounts() throws {
        let keychain = RecordingKeychain(
            items: [
                .password(), .password([.account: .data(Data([0xFF]))]), .password([.account: .data(Data("token".utf8))]),
                .password([.account: .number(1)]), .password([.account: .string("")]),
            ])
        let (status, accounts) = CurrentKeychain.with(keychain) { PreparedQuery(genericPassword()).copyAccounts([:]) }
        #expect(status == errSecSuccess)
        #expect(accounts == ["Skroob", nil, "token", nil, ""])
        let request = try #require(keychain.requests.matched.first)
        #expect(request.limit == nil && request.attributes == .only(.account) && !request.includesSecrets)
    }

    @Test("Each call of an invalid query has the status of the function, and never reaches the keychain")
    func invalid() {
        let context = LAContext()
        context.invalidate()
        let invalid: [([String: Any], [String: Any])] = [
            ([kSecClass: "no such class"], [:]),
            (genericPassword([kSecAttrAccessible: "no such class"]), [:]),
            (genericPassword(), [kSecUseAuthenticationContext: context]),
            (genericPassword(), ["no such key": 1]),
        ]
        for (query, options) in invalid {
            let prepared = PreparedQuery(query).forAccount("a")
            let full = query.merging(options) { $1 }
            #expect(prepared.search(options) != errSecSuccess)
            expectSame({ prepared.search(options) }, { SecItemCopyMatching(full, nil) })
            expectSame({ prepared.copySecret(options).0 }, { SecItemCopyMatching(full, nil) })
            expectSame({ prepared.copyAccounts(options).0 }, { SecItemCopyMatching(full, nil) })
            expectSame({ prepared.update(Data(), accessControl: nil, options) }, { SecItemUpdate(full, [kSecValueData: Data()]) })
        }
    }
}
