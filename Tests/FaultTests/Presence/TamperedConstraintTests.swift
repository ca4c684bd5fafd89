// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Access control that somebody altered in the file")
struct TamperedConstraintTests {
    private static let protected = AccessControl(.whenPasscodeSetThisDeviceOnly, constraint: .userPresence)
    private static let forbidden = Authentication(interaction: .forbidden)

    private func query(_ account: String?) -> ItemQuery {
        var attributes = ItemAttributes([.service: .string("test")])
        if let account { attributes[.account] = .string(account) }
        return ItemQuery(itemClass: .genericPassword, attributes: attributes)
    }

    private func status(_ body: () throws(KeychainFailure) -> Void) -> KeychainStatus {
        do throws(KeychainFailure) {
            try body()
            return .success
        } catch {
            return error.status
        }
    }

    @Test("Who takes it away gains nothing: the next value is not stored without it")
    func stripped() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.set("swordfish")
            try keychain.addItem("safe", "12345", protectedBy: Self.protected)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET constraints = NULL")
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "safe") } == .decode)
            func update(_ control: AccessControl?) -> KeychainStatus {
                status { () throws(KeychainFailure) in
                    try keychain.update(UpdateRequest(query: query("safe"), secret: Data("new".utf8), accessControl: control))
                }
            }
            #expect(update(nil) == .decode)
            #expect(update(Self.protected) == .success)
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "safe", Self.forbidden) } == .interactionNotAllowed)
        }
    }

    @Test("A forged need that nobody could satisfy hides no other item")
    func forged() throws {
        try withLocalKeychain(holder: .processMemory) { keychain, home in
            try keychain.addItem("forged", "lost", .whenUnlocked)
            try keychain.addItem("sound", "sound", .whenUnlocked)
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET constraints = x'0103' WHERE number = 1")
            let found = try keychain.copyMatching(MatchRequest(query: query(nil), limit: nil, includesSecrets: true))
            #expect(found.map(\.secret) == [Data("sound".utf8)])
            #expect(status { () throws(KeychainFailure) in _ = try keychain.secret(of: "forged") } != .itemNotFound)
        }
    }
}
