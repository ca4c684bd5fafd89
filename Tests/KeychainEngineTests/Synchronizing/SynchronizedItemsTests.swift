// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import SyncCore
import Testing

/// A keychain that synchronizes, without the formats, keys, and storage of a circle.
private final class Device {
    /// What one device publishes at a time.
    struct Batch {
        let records: [VersionRecord]
        let origin: Origin
    }

    let home: String
    let keychain: LocalKeychain
    private let log = LogID(.random())
    private var number: UInt64 = 0

    init(home: String) throws {
        self.home = home
        keychain = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
        try keychain.perform(creating: true) { opened throws(KeychainFailure) in
            guard let store = opened.store as? any SyncStore else { throw KeychainFailure(.internal, "not a store with a ledger") }
            try store.startSynchronizing()
        }
    }

    func synchronize<Result>(
        _ body: (any SyncWriting, any SyncItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try keychain.perform(creating: false) { opened throws(KeychainFailure) in try opened.keychain.synchronize(body) }
    }

    /// Publishes what programs have changed.
    func publish() throws -> Batch {
        number += 1
        let origin = Origin(log: log, number: number, hash: .random())
        let records = try synchronize { ledger, items throws(KeychainFailure) in
            var merge = LocalMerge(SyncTransaction(ledger: ledger, items: items))
            try merge.fold()
            return try merge.publish(at: origin)
        }
        return Batch(records: records, origin: origin)
    }

    func read(_ batch: Batch) throws {
        try synchronize { ledger, items throws(KeychainFailure) in
            var merge = LocalMerge(SyncTransaction(ledger: ledger, items: items))
            try merge.fold()
            try merge.read(batch.records, at: batch.origin)
        }
    }

    /// Adds an item as a program does.
    func add(
        _ account: String, _ secret: String, _ accessibility: ItemAccessibility = .afterFirstUnlock, isSynchronizable: Bool = true
    ) throws {
        let attributes = ItemAttributes([
            .account: .string(account), .service: .string("test"), .comment: .data(Data("comment".utf8)),
            .synchronizable: .number(isSynchronizable ? 1 : 0),
        ])
        let control = AccessControl(accessibility)
        _ = try keychain.add(
            AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(secret.utf8), accessControl: control))
    }

    func update(_ account: String, to secret: String, _ accessibility: ItemAccessibility? = nil) throws {
        try keychain.update(UpdateRequest(query: query(account), secret: Data(secret.utf8), accessibility: accessibility))
    }

    func delete(_ account: String) throws { try keychain.delete(DeleteRequest(query: query(account))) }

    func item(_ account: String, _ synchronizability: ItemQuery.Synchronizability = .synchronizable) throws -> KeychainItem? {
        do throws(KeychainFailure) {
            let request = MatchRequest(query: query(account, synchronizability), includesSecrets: true)
            return try keychain.copyMatching(request).first
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }

    func secret(_ account: String) throws -> String? {
        try item(account).map { String(decoding: $0.secret ?? Data(), as: UTF8.self) }
    }

    private func query(_ account: String, _ synchronizability: ItemQuery.Synchronizability = .synchronizable) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account), .service: .string("test")]),
            synchronizability: synchronizability)
    }

    func copyCount() throws -> Int {
        try synchronize { ledger, _ throws(KeychainFailure) in try ledger.liveVersions(after: nil, limit: 100).count { $0.item == nil } }
    }
}

@Suite("Items on their way between keychains", .blocking)
struct SynchronizedItemsTests {
    /// Two keychains with different keys.
    private func withDevices(_ body: (Device, Device) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            for name in ["one", "other"] {
                try FileManager.default.createDirectory(
                    atPath: directory + "/" + name, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            try body(Device(home: directory + "/one"), Device(home: directory + "/other"))
        }
    }

    @Test(
        "An item arrives with its attributes, its dates, and its class",
        arguments: [ItemAccessibility.whenUnlocked, .afterFirstUnlock, .always])
    func arrival(accessibility: ItemAccessibility) throws {
        try withDevices { one, other in
            try one.add("account", "secret", accessibility)
            try other.read(one.publish())
            let sent = try #require(try one.item("account"))
            let received = try #require(try other.item("account"))
            #expect(received.secret == Data("secret".utf8))
            // `sha1` covers the dates as well.
            #expect(received.attributes == sent.attributes)
            #expect(received.accessControl == sent.accessControl)
            // What was received is no change by a program.
            #expect(try other.publish().records.isEmpty)
            #expect(try one.publish().records.isEmpty)
        }
    }

    @Test("Changes and deletions follow")
    func changes() throws {
        try withDevices { one, other in
            try one.add("account", "1")
            try other.read(one.publish())
            try other.update("account", to: "2")
            try one.read(other.publish())
            #expect(try one.secret("account") == "2")
            let reference = try one.item("account")?.reference
            try one.update("account", to: "3")
            try other.read(one.publish())
            #expect(try other.secret("account") == "3")
            #expect(try one.item("account")?.reference == reference)
            try other.delete("account")
            try one.read(other.publish())
            #expect(try one.item("account") == nil)
            #expect(try one.copyCount() == 0)
        }
    }

    /// Runs `body` with two devices that have changed an item at the same time and read of each other.
    private func withConflict(_ body: (Device, Device) throws -> Void) throws {
        try withDevices { one, other in
            try one.add("account", "0")
            try other.read(one.publish())
            try one.update("account", to: "earlier")
            try other.update("account", to: "later")
            let (first, second) = (try one.publish(), try other.publish())
            try one.read(second)
            try other.read(first)
            try body(one, other)
        }
    }

    @Test("Of two changes at the same time the later one is shown, on both devices, and the other one is kept as a copy")
    func conflict() throws {
        try withConflict { one, other in
            for device in [one, other] {
                #expect(try device.secret("account") == "later")
                #expect(try device.copyCount() == 1)
            }
            // A write after that has seen both, and keeps the copy until a person decides.
            try one.update("account", to: "last")
            try other.read(one.publish())
            #expect(try other.secret("account") == "last")
            #expect(try other.copyCount() == 1)
        }
    }

    /// An item that is added over a tombstone takes up its identifier, so both calls concern one record.
    @Test("An item that is deleted and added again replaces the conflict copies that the deletion replaces")
    func deletedAndAddedAgain() throws {
        try withConflict { one, other in
            try one.delete("account")
            try one.add("account", "last")
            try other.read(one.publish())
            for device in [one, other] {
                #expect(try device.secret("account") == "last")
                #expect(try device.copyCount() == 0)
            }
        }
    }

    @Test("Items that must not leave the device, or are not synchronizable, are not sent, and stay beside one that arrives")
    func local() throws {
        try withDevices { one, other in
            try other.add("account", "local", isSynchronizable: false)
            try other.add("kept", "local", .afterFirstUnlockThisDeviceOnly)
            #expect(try other.publish().records.isEmpty)
            try one.add("account", "shared")
            try other.read(one.publish())
            #expect(try other.secret("account") == "shared")
            #expect(try other.item("account", .local)?.secret == Data("local".utf8))
            try one.delete("account")
            try other.read(one.publish())
            #expect(try other.item("account") == nil)
            #expect(try other.item("account", .local)?.secret == Data("local".utf8))
        }
    }

    @Test("An item that a program keeps for this device alone stays in the place of one of the same name that arrives")
    func keptForThisDevice() throws {
        try withDevices { one, other in
            try other.add("kept", "local", .afterFirstUnlockThisDeviceOnly)
            try one.add("kept", "shared")
            try other.read(one.publish())
            #expect(try other.secret("kept") == "local")
            // The class of a shared item is changed while another device writes it.
            try one.add("moved", "1")
            try other.read(one.publish())
            try one.update("moved", to: "2")
            try other.update("moved", to: "mine", .afterFirstUnlockThisDeviceOnly)
            try other.read(one.publish())
            #expect(try other.secret("moved") == "mine")
        }
    }

    @Test("An item that was deleted here, and arrives again, takes over the reference of its tombstone")
    func tombstone() throws {
        try withDevices { one, other in
            try one.add("account", "1")
            let reference = try #require(try one.item("account")).reference
            try one.delete("account")
            try other.add("account", "2")
            try one.read(other.publish())
            #expect(try one.item("account")?.reference == reference)
            #expect(try one.secret("account") == "2")
        }
    }

    @Test("While the keychain is locked, deletions are sent and applied, and writes of the other class wait")
    func locked() throws {
        try withDevices { one, other in
            try one.add("locked", "1", .whenUnlocked)
            try one.add("deleted", "1", .whenUnlocked)
            try other.read(one.publish())
            try other.keychain.setPasscode(Passcode(text: "swordfish"), autoLock: .never)
            try other.keychain.lock(.everything)
            try other.synchronize { _, items throws(KeychainFailure) in
                #expect(try !items.isAvailable(.whenUnlocked))
                #expect(try items.isAvailable(.afterFirstUnlock) == false, "not unlocked since")
            }
            try one.delete("deleted")
            try other.read(one.publish())
            try one.update("locked", to: "2")
            let update = try one.publish()
            #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try other.secret("locked") }
            try other.keychain.unlock(Passcode(text: "swordfish"), autoLock: .never)
            #expect(try other.item("deleted") == nil)
            #expect(try other.secret("locked") == "1")
            try other.read(update)
            #expect(try other.secret("locked") == "2")
        }
    }

    @Test("An item without a record is shared once the rows are compared with the ledger")
    func comparison() throws {
        try withDevices { one, other in
            try one.add("account", "1")
            try one.add("local", "1", isSynchronizable: false)
            try one.synchronize { ledger, _ throws(KeychainFailure) in
                for change in try ledger.recordedChanges(.written, limit: 10) { try ledger.eraseRecordedChange(change.item) }
            }
            #expect(try one.publish().records.isEmpty)
            var counts: [Int] = []
            func compare(_ device: Device) throws {
                try device.synchronize { ledger, _ throws(KeychainFailure) in counts.append(try ledger.recordUnknownRows()) }
            }
            try compare(one)
            try other.read(one.publish())
            #expect(try other.secret("account") == "1")
            for device in [one, other] { try compare(device) }
            #expect(counts == [1, 0, 0])
        }
    }

    @Test("While a snapshot is read, programs and the agent write, and the snapshot stays as it was")
    func snapshot() throws {
        try withDevices { one, _ in
            try one.add("account", "1")
            _ = try one.publish()
            let object = OutgoingObject(name: "p/1", bytes: [1])
            try one.keychain.readSynchronized { ledger, items throws(KeychainFailure) in
                let version = try ledger.liveVersions(after: nil, limit: 1).first
                let content = try version.map { version throws(KeychainFailure) in try items.content(of: version) }
                #expect(throws: Never.self) { try one.update("account", to: "2") }
                try one.keychain.synchronize { writing, _ throws(KeychainFailure) in try writing.insert(object) }
                #expect(try ledger.recordedChanges(.written, limit: 1).isEmpty)
                #expect(try ledger.outgoingNames().isEmpty)
                #expect(try version.map { version throws(KeychainFailure) in try items.content(of: version) } == content)
            }
            #expect(try one.secret("account") == "2")
            try one.keychain.readSynchronized { ledger, _ throws(KeychainFailure) in
                #expect(try ledger.outgoingNames() == [object.name])
            }
        }
    }

    /// The row of the locked class is replaced without being opened.
    @Test("While the keychain is locked, an item is shown that has moved from the locked class to one that is available")
    func changedClass() throws {
        try withDevices { one, other in
            try one.add("account", "1", .whenUnlocked)
            try other.read(one.publish())
            try other.keychain.setPasscode(Passcode(text: "swordfish"), autoLock: .never)
            try other.keychain.lock(.whenUnlocked)
            try one.update("account", to: "2", .afterFirstUnlock)
            try other.read(one.publish())
            #expect(try other.secret("account") == "2")
            #expect(try other.copyCount() == 0)
        }
    }

    @Test(
        "A row that another program has altered is neither sent nor taken for a deletion",
        arguments: ["is_synchronizable = 0", "is_tombstone = 1", "accessibility = 1", "sealed_secret = zeroblob(40)"])
    func altered(assignment: String) throws {
        try withDevices { one, other in
            try one.add("account", "1")
            try other.read(one.publish())
            try one.update("account", to: "2")
            // The record of the change stays.
            try RawDatabase(one.home + "/keychain.db").execute("UPDATE items SET \(assignment)")
            let keychain = LocalKeychain(home: one.home)
            _ = try keychain.acceptContent(applying: true)
            let batch = try one.publish()
            #expect(batch.records.isEmpty)
            try other.read(batch)
            #expect(try other.secret("account") == "1")
        }
    }
}

@Suite("A content that may not become an item is refused")
struct ReceivedContentTests {
    /// What a hostile member sends in place of an item.
    private struct Flaw: CustomTestStringConvertible {
        let testDescription: String
        let alter: @Sendable (inout ItemAttributes, inout ItemAccessibility, inout ItemClass) -> Void

        init(_ description: String, _ alter: @escaping @Sendable (inout ItemAttributes, inout ItemAccessibility, inout ItemClass) -> Void) {
            testDescription = description
            self.alter = alter
        }
    }

    private static let flaws = [
        Flaw("a class that stays on its device") { attributes, accessibility, _ in
            accessibility = .whenUnlockedThisDeviceOnly
            attributes[.accessible] = .string(accessibility.rawValue)
        },
        Flaw("two classes") { _, accessibility, _ in accessibility = .whenUnlocked },
        Flaw("not synchronizable") { attributes, _, _ in attributes[.synchronizable] = .number(0) },
        Flaw("a tombstone") { attributes, _, _ in attributes[.tombstone] = .number(1) },
        Flaw("with sha1") { attributes, _, _ in attributes[.sha1] = .data(Data(count: 20)) },
        Flaw("without an access group") { attributes, _, _ in attributes[.accessGroup] = nil },
        Flaw("the group of the circle's keys") { attributes, _, _ in attributes[.accessGroup] = .string("keychain-sync.circle") },
        Flaw("without a modification date") { attributes, _, _ in attributes[.modificationDate] = nil },
        Flaw("a modification date that is no number") { attributes, _, _ in attributes[.modificationDate] = .date(.nan) },
        Flaw("an infinite creation date") { attributes, _, _ in attributes[.creationDate] = .date(-.infinity) },
        Flaw("a flag as text") { attributes, _, _ in attributes[.isInvisible] = .string("1") },
        Flaw("an attribute of another class") { attributes, _, _ in attributes[.server] = .string("example.com") },
        Flaw("a certificate") { _, _, itemClass in itemClass = .certificate },
    ]

    @Test("Each flaw", arguments: flaws)
    private func flaw(_ flaw: Flaw) throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let device = try Device(home: home)
            try device.add("account", "secret")
            let sent = try #require(try device.publish().records.first?.content)
            var attributes = try #require(ItemAttributes(encoded: sent.attributes))
            var (accessibility, itemClass) = (sent.accessibility, sent.itemClass)
            flaw.alter(&attributes, &accessibility, &itemClass)
            let altered = SyncContent(
                itemClass: itemClass, accessibility: accessibility, attributes: attributes.encoded, secret: sent.secret)
            try device.synchronize { _, items throws(KeychainFailure) in
                #expect(try items.summary(of: sent) != nil)
                #expect(try items.summary(of: altered) == nil)
            }
        }
    }

    @Test("Two contents have one digest if they differ in their dates only")
    func digest() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let device = try Device(home: home)
            try device.add("account", "secret")
            let sent = try #require(try device.publish().records.first?.content)
            let attributes = try #require(ItemAttributes(encoded: sent.attributes))
            func content(_ changes: ItemAttributes, secret: [UInt8]?) -> SyncContent {
                SyncContent(
                    itemClass: sent.itemClass, accessibility: sent.accessibility, attributes: attributes.updated(with: changes).encoded,
                    secret: secret)
            }
            try device.synchronize { _, items throws(KeychainFailure) in
                let digest = try items.summary(of: sent)?.contentDigest
                let dates = ItemAttributes([.creationDate: .date(1), .modificationDate: .date(2)])
                #expect(try items.summary(of: content(dates, secret: sent.secret))?.contentDigest == digest)
                #expect(try items.summary(of: content(ItemAttributes(), secret: nil))?.contentDigest != digest)
                #expect(try items.summary(of: content(ItemAttributes(), secret: []))?.contentDigest != digest)
                #expect(
                    try items.summary(of: content(ItemAttributes(), secret: nil))?.contentDigest
                        != items.summary(of: content(ItemAttributes(), secret: []))?.contentDigest)
                #expect(
                    try items.summary(of: content(ItemAttributes([.label: .string("label")]), secret: sent.secret))?.contentDigest != digest
                )
            }
        }
    }
}
