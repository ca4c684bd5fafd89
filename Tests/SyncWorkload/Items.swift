// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine

/// The items of the workload: passwords of one service, half of them in each lane.
///
/// Each write has a value of its own, which begins with the identifier of the write.
enum Item {
    static let count = 600
    /// The items that all devices write most of the time, so that they collide.
    static let contestedCount = 40

    static func attributes(_ number: Int) -> ItemAttributes {
        ItemAttributes([.account: .string("item \(number)"), .service: .string("workload"), .synchronizable: .number(1)])
    }

    static func accessibility(_ number: Int) -> ItemAccessibility { number.isMultiple(of: 2) ? .whenUnlocked : .afterFirstUnlock }

    static func query(_ number: Int) -> ItemQuery {
        ItemQuery(
            itemClass: .genericPassword,
            attributes: ItemAttributes([.account: .string("item \(number)"), .service: .string("workload")]),
            synchronizability: .synchronizable)
    }

    /// Returns the item that a program sees, with its secret; nil if there is none.
    static func find(_ number: Int, in keychain: any Keychain) throws(KeychainFailure) -> KeychainItem? {
        do throws(KeychainFailure) {
            return try keychain.copyMatching(MatchRequest(query: query(number), includesSecrets: true)).first
        } catch {
            guard error.status == .itemNotFound else { throw error }
            return nil
        }
    }

    /// Returns the secret of a write: mostly as short as a password, and sometimes many pages long.
    static func value(of write: String) -> Data {
        // Any function of the identifier does.
        let number = write.utf8.reduce(7) { ($0 * 31 + Int($1)) % 1_000_003 }
        let byteCount = number % 50 == 0 ? number % 60_000 : number % 60
        return Data("\(write) \(String(repeating: "x", count: byteCount))".utf8)
    }

    /// Returns the identifier of the write that a value is of; nil if the value is not exactly that of a write.
    static func write(of value: some Sequence<UInt8>) -> String? {
        let bytes = Array(value)
        let write = String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        return Data(bytes) == self.value(of: write) ? write : nil
    }
}

extension Device {
    /// Returns the conflict copies of the item that a row shows: the identifiers of their versions.
    func copies(besides item: ItemID) throws(KeychainFailure) -> [LiveVersion] {
        try keychain.readLedger { ledger throws(KeychainFailure) in
            guard let shown = try ledger.liveVersion(shownBy: item) else { return [] }
            return try ledger.liveVersions(named: shown.name).filter { $0.item == nil }
        }
    }

    /// Returns the writes whose values a device has, by version.
    ///
    /// Only the transactions of agents open conflict copies. Nothing is written.
    func writes(of versions: [LiveVersion]) throws(KeychainFailure) -> [SyncVersionID: String] {
        guard !versions.isEmpty else { return [:] }
        return try keychain.synchronize { ledger, items throws(KeychainFailure) in
            var writes: [SyncVersionID: String] = [:]
            for version in versions {
                guard let secret = try items.content(of: version)?.secret else { continue }
                writes[version.reference.id] = Item.write(of: secret) ?? "a damaged value"
            }
            return writes
        }
    }
}
