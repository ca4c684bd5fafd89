// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Updates of one item at the same time")
struct UpdatesOfOneItemTests {
    @Test("Each keeps what the others have changed: it is made from the item as it is when it is written")
    func changesOfOtherAttributes() async throws {
        let directory = try TemporaryDirectory()
        let keychain = LocalKeychain(home: directory.path + "/home")
        try keychain.addItem("shared", "secret")
        let query = ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string("shared"), .service: .string("test")]))
        let attributes: [Attribute] = [.label, .comment, .description, .creator]
        let outcomes = await onThreads(
            attributes.map { attribute in
                { @Sendable () -> Result<Int, any Error> in
                    Result {
                        var lostCount = 0
                        for round in 1...Int64(100) {
                            let value: AttributeValue = attribute == .creator ? .number(round) : .string("round \(round)")
                            try keychain.update(UpdateRequest(query: query, changes: ItemAttributes([attribute: value])))
                            // Nobody else changes this one.
                            let item = try keychain.copyMatching(MatchRequest(query: query)).first
                            if item?.attributes[attribute] != value { lostCount += 1 }
                        }
                        return lostCount
                    }
                }
            })
        for outcome in outcomes { #expect(try outcome.get() == 0) }
        #expect(try keychain.secret(of: "shared") == "secret")
    }
}
