// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

/// A backup in memory.
struct BackupFile {
    var bytes: [UInt8]

    static let passwordText = "12345"

    /// The content of a backup.
    struct Contents {
        var items: [BackupItem] = []
        var summary = BackupSummary()
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Writes a backup with the lowest permitted cost, because these tests derive often.
    init(
        _ items: [BackupItem], leftBehind: BackupSummary = BackupSummary(), id: Identifier128 = .random(), record: PasscodeRecord? = nil,
        creationDate: Double = 1, password: String = passwordText
    ) throws {
        let file = Written()
        let writer = try BackupWriter(
            password: PasscodeStore.code(password), id: id, record ?? PasscodeRecord(cost: PasscodeStore.cost), creationDate: creationDate
        ) { bytes throws(KeychainFailure) in file.bytes += bytes }
        for item in items { try writer.append(item) }
        var summary = leftBehind
        summary.savedCount = items.count
        try writer.finish(summary)
        bytes = file.bytes
    }

    private final class Written {
        var bytes: [UInt8] = []
    }

    var header: BackupHeader {
        get throws(KeychainFailure) { try BackupHeader(from: source) }
    }

    func contents(password: String = passwordText) throws -> Contents {
        let reader = try BackupReader(header, password: PasscodeStore.code(password), source: source)
        var contents = Contents()
        contents.summary = try reader.forEachItem { contents.items.append($0) }
        return contents
    }

    /// The status of reading.
    func statusOfReading(password: String = passwordText) throws -> KeychainStatus {
        do {
            _ = try contents(password: password)
            return .success
        } catch let failure as KeychainFailure {
            return failure.status
        }
    }

    private var source: BackupSource {
        let bytes = bytes
        return { (offset, byteCount) throws(KeychainFailure) in
            let start = min(Int(offset), bytes.count)
            return Array(bytes[start..<min(start + byteCount, bytes.count)])
        }
    }
}

extension BackupItem {
    /// An item that may be in a backup.
    init(_ account: String, _ secret: Data?, _ accessibility: ItemAccessibility = .whenUnlocked) {
        self.init(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: accessibility,
            attributes: ItemAttributes([
                .account: .string(account), .service: .string("the combination"), .accessGroup: .string("com.example.spaceball"),
                .accessible: .string(accessibility.rawValue),
            ]), secret: secret)
    }
}

@Suite("A backup")
struct BackupTests {
    private static let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

    @Test(
        "Items of any size are read back, including sizes at chunk boundaries",
        arguments: [0, 200_000] + Array(65_300...65_420))
    func roundTrip(_ byteCount: Int) throws {
        let secret = Self.bytes.prefix(byteCount)
        let contents = try BackupFile([BackupItem("large", secret), BackupItem("small", nil, .afterFirstUnlock)]).contents()
        #expect(contents.items.map(\.secret) == [secret, nil])
        #expect(contents.items.map(\.accessibility) == [.whenUnlocked, .afterFirstUnlock])
    }

    @Test("The summary counts omitted items by reason")
    func summary() throws {
        var summary = BackupSummary()
        summary.thisDeviceOnlyCount = 1
        summary.constrainedCount = 2
        summary.unreadableCount = 3
        let contents = try BackupFile([BackupItem("one", Data())], leftBehind: summary).contents()
        summary.savedCount = 1
        #expect(contents.summary == summary)
    }

    @Test("A wrong password does not open a backup", arguments: ["1234", "123456", "12345 "])
    func otherPassword(_ password: String) throws {
        let file = try BackupFile([BackupItem("one", Data("secret".utf8))])
        #expect(try file.statusOfReading(password: password) == .authFailed)
        #expect(try file.statusOfReading() == .success)
    }

    @Test("A backup reveals no name and no secret, and two backups of the same items have nothing in common")
    func sealed() throws {
        let items = [BackupItem("an account to be hidden", Data("a secret to be hidden".utf8))]
        let (one, other) = (try BackupFile(items).bytes, try BackupFile(items).bytes)
        for text in ["an account", "a secret", "com.example", "the combination"] {
            #expect(Data(one).firstRange(of: Data(text.utf8)) == nil)
        }
        // After the fields that are the same in all backups.
        #expect(zip(one, other).dropFirst(86).count { $0 == $1 } < 40)
    }

    @Test("Items that must not leave the device or could not be read again are refused")
    func refusedItems() throws {
        let deviceOnly = BackupItem("one", Data(), .whenUnlockedThisDeviceOnly)
        let bare = BackupItem(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: .whenUnlocked,
            attributes: ItemAttributes(), secret: nil)
        for item in [deviceOnly, bare] {
            #expect(throws: KeychainFailure(.internal, "")) { try BackupFile([item]) }
        }
    }

    @Test("A read error is not reported as damage")
    func failingSource() throws {
        let failing: BackupSource = { (_, _) throws(KeychainFailure) in throw KeychainFailure(.inputOutput, "the disk") }
        #expect(throws: KeychainFailure(.inputOutput, "")) { try BackupHeader(from: failing) }
    }
}

@Suite("A damaged backup")
struct BackupDamageTests {
    private static let sealedChunkByteCount = 65_536 + 16

    /// Four chunks, the last one short.
    private static func long() throws -> BackupFile {
        try BackupFile([BackupItem("one", Data(repeating: 1, count: 100_000)), BackupItem("two", Data(repeating: 2, count: 100_000))])
    }

    @Test("Any altered bit is damage, not a wrong password and not a newer version")
    func altered() throws {
        let good = try BackupFile([BackupItem("one", Data("12345".utf8))])
        #expect(try good.contents().items.count == 1)
        for index in good.bytes.indices {
            var altered = good
            altered.bytes[index] ^= 1 << (index % 8)
            #expect(try altered.statusOfReading() == .decode, "byte \(index)")
        }
    }

    @Test("A truncated backup is damaged")
    func cut() throws {
        let good = try BackupFile([BackupItem("one", Data("12345".utf8))])
        for count in good.bytes.indices {
            #expect(try BackupFile(Array(good.bytes.prefix(count))).statusOfReading() == .decode, "\(count) bytes")
        }
    }

    @Test("A backup cut between two chunks is damaged, because the end is missing", arguments: 0...3)
    func cutBetweenChunks(_ count: Int) throws {
        let good = try Self.long()
        #expect(good.bytes.count > 118 + 3 * Self.sealedChunkByteCount)
        let cut = BackupFile(Array(good.bytes.prefix(118 + count * Self.sealedChunkByteCount)))
        #expect(try cut.statusOfReading() == .decode)
    }

    /// Manipulations of whole chunks.
    enum Mixing: CaseIterable {
        case swapped, repeated, leftOut, lastTwice, ofAnotherBackup
    }

    @Test("Swapped, repeated, missing, and foreign chunks are damage", arguments: Mixing.allCases)
    func mixed(_ mixing: Mixing) throws {
        let good = try Self.long()
        let other = try Self.long()
        func chunk(_ number: Int, of file: BackupFile = good) -> [UInt8] {
            let start = 118 + number * Self.sealedChunkByteCount
            return Array(file.bytes[start..<min(start + Self.sealedChunkByteCount, file.bytes.count)])
        }
        let chunks =
            switch mixing {
            case .swapped: [chunk(1), chunk(0), chunk(2), chunk(3)]
            case .repeated: [chunk(0), chunk(1), chunk(1), chunk(2), chunk(3)]
            case .leftOut: [chunk(0), chunk(2), chunk(3)]
            case .lastTwice: [chunk(0), chunk(1), chunk(2), chunk(3), chunk(3)]
            case .ofAnotherBackup: [chunk(0), chunk(1, of: other), chunk(2), chunk(3)]
            }
        let header = Array(good.bytes.prefix(118))
        #expect(try BackupFile(header + chunk(0) + chunk(1) + chunk(2) + chunk(3)).statusOfReading() == .success)
        #expect(try BackupFile(chunks.reduce(header, +)).statusOfReading() == .decode)
    }
}

@Suite("Backup test vectors")
struct BackupVectorTests {
    struct Vectors: Decodable {
        let id: Hexadecimal
        let salt: Hexadecimal
        let creationDate: Double
        let cases: [Case]
    }

    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        struct Item: Decodable, Sendable {
            let reference: Hexadecimal
            let accessibility: UInt8
            let attributes: Hexadecimal
            let secretDigest: Hexadecimal?
        }

        struct LeftBehind: Decodable, Sendable {
            let thisDeviceOnly: Int
            let constrained: Int
            let unreadable: Int
        }

        let name: String
        let expect: String
        let password: String
        let file: Hexadecimal
        let items: [Item]?
        let leftBehind: LeftBehind?

        var testDescription: String { name }
    }

    static let vectors = Result { try TestVectors.load("backup-v1.json", as: Vectors.self) }
    static let cases = (try? vectors.get().cases) ?? []

    @Test("The vectors contain valid and invalid cases")
    func vectorsAreRead() throws {
        let expectations = Set(try Self.vectors.get().cases.map(\.expect))
        #expect(expectations == ["opens", "decode", "notAvailable", "authFailed"])
    }

    @Test("The backup of another implementation yields its items", arguments: cases.filter { $0.expect == "opens" })
    func opens(_ vector: Case) throws {
        let file = BackupFile(vector.file.bytes)
        #expect(try file.header.creationDate == Self.vectors.get().creationDate)
        let contents = try file.contents(password: vector.password)
        let expected = try #require(vector.items)
        #expect(contents.items.map { Array($0.reference.data) } == expected.map(\.reference.bytes))
        #expect(contents.items.map(\.accessibility.code) == expected.map(\.accessibility))
        #expect(contents.items.map(\.attributes.encoded) == expected.map(\.attributes.bytes))
        #expect(contents.items.map { $0.secret.map { Array(SHA256.hash(data: $0)) } } == expected.map { $0.secretDigest?.bytes })
        let leftBehind = try #require(vector.leftBehind)
        #expect(contents.summary.savedCount == expected.count)
        #expect(contents.summary.thisDeviceOnlyCount == leftBehind.thisDeviceOnly)
        #expect(contents.summary.constrainedCount == leftBehind.constrained)
        #expect(contents.summary.unreadableCount == leftBehind.unreadable)
    }

    @Test("Writing the items again gives the same bytes", arguments: cases.filter { $0.expect == "opens" })
    func rewritten(_ vector: Case) throws {
        let vectors = try Self.vectors.get()
        let original = BackupFile(vector.file.bytes)
        let contents = try original.contents(password: vector.password)
        let copy = try BackupFile(
            contents.items, leftBehind: contents.summary, id: vectors.id.identifier(),
            record: PasscodeRecord(salt: vectors.salt.bytes, cost: original.header.passcode.cost), creationDate: vectors.creationDate,
            password: vector.password)
        #expect(copy.bytes == original.bytes)
    }

    @Test("Damage, newer versions, refused costs, and wrong passwords are distinguished", arguments: cases.filter { $0.expect != "opens" })
    func refused(_ vector: Case) throws {
        let expected: [String: KeychainStatus] = ["decode": .decode, "notAvailable": .notAvailable, "authFailed": .authFailed]
        #expect(try BackupFile(vector.file.bytes).statusOfReading(password: vector.password) == expected[vector.expect])
    }
}
