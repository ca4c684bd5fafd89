// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

@Suite("A damaged row")
struct RowDamageTests {
    private let store: SampleStore
    private let row: SealedRow

    init() throws {
        store = try SampleStore()
        let digests = [AttributeDigest(.label, .random()), AttributeDigest(.generic, .random())]
        row = try store.seal(Data("12345".utf8), header: store.header(attributeDigests: digests))
    }

    enum Column: String, CaseIterable, Sendable {
        case wrappedItemKey, sealedAttributes, sealedSecret

        var path: any WritableKeyPath<SealedRow, [UInt8]> & Sendable {
            switch self {
            case .wrappedItemKey: \.wrappedItemKey
            case .sealedAttributes: \.sealedAttributes
            case .sealedSecret: \.sealedSecret
            }
        }
    }

    @Test("A row with any altered byte in a sealed column is rejected", arguments: Column.allCases)
    func alteredColumn(_ column: Column) throws {
        for index in row[keyPath: column.path].indices {
            var altered = row
            altered[keyPath: column.path][index] ^= 0x10
            #expect(store.statusOfOpening(altered) == .decode, "byte \(index)")
            #expect(!store.keybag.cipher.isIntact(altered), "byte \(index)")
        }
    }

    @Test("A row with a shortened column is rejected", arguments: Column.allCases)
    func shortenedColumn(_ column: Column) throws {
        for count in row[keyPath: column.path].indices {
            var shortened = row
            shortened[keyPath: column.path] = Array(row[keyPath: column.path].prefix(count))
            #expect(store.statusOfOpening(shortened) == .decode, "\(count) bytes")
            #expect(!store.keybag.cipher.isIntact(shortened), "\(count) bytes")
        }
    }

    @Test("A row with any altered byte in an identifier or digest of its header is rejected")
    func alteredIdentifier() throws {
        let fields: [WritableKeyPath<RowHeader, Identifier128>] = [
            \.revision, \.serviceDigest, \.accountDigest, \.remainingKeyDigest, \.accessGroupDigest,
        ]
        for index in 0..<Identifier128.byteCount {
            func altered(_ identifier: Identifier128) throws -> Identifier128 {
                var bytes = identifier.bytes
                bytes[index] ^= 1
                return try #require(Identifier128(bytes))
            }
            var rows: [SealedRow] = []
            for field in fields {
                var changed = row
                changed.header[keyPath: field] = try altered(row.header[keyPath: field])
                rows.append(changed)
            }
            var changed = row
            changed.header.reference = PersistentReference(itemClass: .genericPassword, id: try altered(row.header.reference.id))
            rows.append(changed)
            for position in row.header.attributeDigests.indices {
                var changed = row
                let old = row.header.attributeDigests[position]
                changed.header.attributeDigests[position] = AttributeDigest(old.attribute, try altered(old.digest))
                rows.append(changed)
            }
            for changed in rows {
                #expect(changed != row && store.statusOfOpening(changed) == .decode)
                #expect(!store.keybag.cipher.isIntact(changed))
            }
        }
    }

    @Test("A row with any other altered column of its header is rejected")
    func alteredHeader() throws {
        let changes: [(inout RowHeader) -> Void] = [
            { $0.formatVersion = 0 },
            { $0.reference = PersistentReference(itemClass: .internetPassword, id: $0.reference.id) },
            { $0.accessibility = .whenUnlockedThisDeviceOnly },
            { $0.classKeyGeneration = 2 },
            { $0.isSynchronizable.toggle() },
            { $0.isTombstone.toggle() },
            { $0.attributeDigests.removeLast() },
            { $0.attributeDigests = [] },
            { $0.attributeDigests[0] = AttributeDigest(.comment, $0.attributeDigests[0].digest) },
            { $0.constraints = [] },
        ]
        for (position, change) in changes.enumerated() {
            var changed = row
            change(&changed.header)
            #expect(store.statusOfOpening(changed) == .decode, "change \(position)")
            #expect(!store.keybag.cipher.isIntact(changed), "change \(position)")
        }
    }

    @Test("A row with a part of another row is rejected", arguments: Column.allCases)
    func mixedRows(_ column: Column) throws {
        let other = try store.seal(Data("54321".utf8))
        var mixed = row
        mixed[keyPath: column.path] = other[keyPath: column.path]
        #expect(store.statusOfOpening(mixed) == .decode)
        #expect(!store.keybag.cipher.isIntact(mixed))
    }

    @Test("A row with a part of an older version of the item is rejected", arguments: Column.allCases)
    func olderWrite(_ column: Column) throws {
        var header = row.header
        header.revision = .random()
        let newer = try store.seal(Data("54321".utf8), header: header)
        var mixed = newer
        mixed[keyPath: column.path] = row[keyPath: column.path]
        #expect(store.statusOfOpening(newer) == .success)
        #expect(store.statusOfOpening(mixed) == .decode)
    }

    @Test("A row moved to another store is refused, even with the same device secret")
    func otherStore() throws {
        let secret = try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        let one = try SampleStore(deviceSecret: secret)
        let two = try SampleStore(deviceSecret: secret)
        let moved = try one.seal(nil)
        #expect(one.statusOfOpening(moved) == .success)
        #expect(two.statusOfOpening(moved) == .decode)
        #expect(!two.keybag.cipher.isIntact(moved))
    }

    @Test("Every altered byte of the tag is detected")
    func alteredTag() throws {
        for index in row.tag.indices {
            var altered = row
            altered.tag[index] ^= 1
            #expect(!store.keybag.cipher.isIntact(altered))
        }
        #expect(store.keybag.cipher.isIntact(row))
    }

    @Test("The failure reveals nothing about the content")
    func failureRevealsNothing() throws {
        var altered = row
        altered.sealedSecret[0] ^= 1
        let failure = #expect(throws: KeychainFailure.self) { try store.open(altered) }
        for word in ["12345", "Skroob", "combination", "spaceball"] {
            #expect(failure?.description.contains(word) == false)
        }
    }
}
