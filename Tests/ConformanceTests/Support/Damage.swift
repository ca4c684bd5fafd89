// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
import Foundation
import KeychainCore
import KeychainTesting
import Testing

/// A kind of damage to a stored row.
///
/// None changes the columns that a search uses.
enum Damage: CaseIterable, Sendable {
    case attributes
    case secret
    case itemKey
    case revision
    case everything

    fileprivate func apply(to row: inout SealedRow) {
        switch self {
        case .attributes: row.sealedAttributes[0] ^= 1
        case .secret: row.sealedSecret[0] ^= 1
        case .itemKey: row.wrappedItemKey[0] ^= 1
        case .revision: row.header.revision = .random()
        case .everything:
            row.wrappedItemKey = []
            row.sealedAttributes = []
            row.sealedSecret = []
            row.tag = []
        }
    }
}

/// The rows of the keychain that the test runs on.
enum StoredRows {
    private static func store() throws -> any ItemStore {
        try #require(InMemoryKeychain.current).store
    }

    /// Changes the row of a persistent reference directly in the store, without any check.
    static func change(_ reference: Data?, _ change: (inout SealedRow) -> Void) throws {
        let reference = try #require(reference.flatMap { PersistentReference($0) })
        let store = try store()
        let generation = try store.read { reading throws(KeychainFailure) in try reading.keybag().generation }
        let outcome = try store.write(ifKeybagGeneration: generation) { writing throws(KeychainFailure) in
            var found: SealedRow?
            try writing.forEachRow(matching: RowQuery(id: reference.id), includingSecrets: true) { row throws(KeychainFailure) in
                found = row
                return .stop
            }
            guard var row = found, let number = row.number else { throw KeychainFailure(.itemNotFound, "no such row") }
            change(&row)
            try writing.replace(number: number, with: row)
        }
        guard case .written = outcome else {
            Issue.record("the keybag changed during a test")
            return
        }
    }

    static func damage(_ reference: Data?, _ damage: Damage = .everything) throws {
        try change(reference) { damage.apply(to: &$0) }
    }

    /// Every row, oldest first.
    static func all() throws -> [SealedRow] {
        try store().read { reading throws(KeychainFailure) in
            var rows: [SealedRow] = []
            try reading.forEachRow(matching: RowQuery(), includingSecrets: true) { row throws(KeychainFailure) in
                rows.append(row)
                return .proceed
            }
            return rows
        }
    }

    /// The rows that were set aside, oldest first.
    static func quarantined() throws -> [SealedRow] {
        try store().read { reading throws(KeychainFailure) in try reading.quarantinedRows().map(\.row) }
    }

    static func keybagGeneration() throws -> UInt64 {
        try store().read { reading throws(KeychainFailure) in try reading.keybag().generation }
    }
}
#endif
