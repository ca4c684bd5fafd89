// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Synchronization and changes of the keys", .blocking)
struct RewrappingRecordTests {
    private static let itemCount = Scale.pick(300, full: 10_000)

    private func addItems(_ keychain: LocalKeychain) throws {
        for number in 0..<Self.itemCount {
            let attributes = ItemAttributes([
                .account: .string("account \(number)"), .service: .string("test"), .synchronizable: .number(1),
            ])
            let control = AccessControl(number.isMultiple(of: 2) ? .whenUnlocked : .afterFirstUnlock)
            _ = try keychain.add(
                AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data("secret".utf8), accessControl: control))
        }
    }

    /// The revision of each row, and the generations of the class keys.
    private func rows(_ keychain: LocalKeychain) throws -> (revisions: [ItemID: Identifier128], generations: Set<UInt32>) {
        var revisions: [ItemID: Identifier128] = [:]
        var generations: Set<UInt32> = []
        _ = try keychain.perform(creating: false) { opened throws(KeychainFailure) in
            try opened.store.read { reading throws(KeychainFailure) in
                try reading.forEachRow(matching: RowQuery(), includingSecrets: false) { row in
                    revisions[row.header.reference.id] = row.header.revision
                    generations.insert(row.header.classKeyGeneration)
                    return .proceed
                }
            }
        }
        return (revisions, generations)
    }

    @Test("Setting and removing a passcode reseals every row, and records no change")
    func rewrapping() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
            try addItems(keychain)
            try RecordAudit.with(keychain) { audit throws(KeychainFailure) in try audit.start() }
            let before = try rows(keychain)
            try keychain.set("passcode")
            let after = try rows(keychain)
            #expect(after.revisions == before.revisions && after.revisions.count == Self.itemCount)
            #expect(after.generations.isDisjoint(with: before.generations))
            try RecordAudit.with(keychain) { audit throws(KeychainFailure) in
                let (count, objections) = (try audit.recordCount(), try audit.objections())
                #expect(count == 0)
                #expect(objections == [])
            }
            #expect(try keychain.verify(purgingQuarantine: false).isSound)
        }
    }
}
