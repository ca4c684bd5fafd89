// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

/// Where `valet migrate` takes secrets from.
enum MigrationSource {
    case valet(Valet, Entitlements)
    case service(String, Entitlements)

    /// What reading the source and writing the destination needs.
    var entitlements: Entitlements {
        switch self {
        case .valet(_, let entitlements), .service(_, let entitlements): entitlements
        }
    }

    func migrate(into destination: Valet, removingOriginals: Bool) throws {
        switch self {
        case .valet(let valet, _):
            try destination.migrateObjects(from: valet, removeOnCompletion: removingOriginals)
        case .service(let service, _):
            try destination.migrateObjects(matching: Self.query(service), removeOnCompletion: removingOriginals)
        }
    }

    func keys() throws -> Set<String> {
        switch self {
        case .valet(let valet, _): return try valet.allKeys()
        case .service(let service, _): return try Self.accounts(service)
        }
    }

    private static func query(_ service: String) -> [String: AnyHashable] {
        [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service,
        ]
    }

    /// A search for all values passes over those that cannot be read; a migration must not.
    func requireReadable() throws {
        let query: [String: Any] =
            switch self {
            case .valet(let valet, _): valet.itemQuery
            case .service(let service, _): Self.query(service)
            }
        let all = try Self.find(query)
        let readable = try Self.find(query.merging([kSecReturnData as String: true]) { _, new in new })
        guard readable.count == all.count else {
            throw CommandFailure(
                .damaged, "an item cannot be read, and nothing was moved",
                advice: "`valet verify` lists what is damaged. Put back a backup, or remove it with `valet remove`."
            )
        }
    }

    private static func accounts(_ service: String) throws -> Set<String> {
        try Set(
            find(query(service)).map { attributes in
                guard let account = attributes[kSecAttrAccount as String] as? String else { throw MigrationError.keyToMigrateInvalid }
                return account
            })
    }

    private static func find(_ query: [String: Any]) throws -> [[String: Any]] {
        var query = query
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let found = result as? [[String: Any]] else {
            throw KeychainFailure(KeychainStatus(rawValue: status), "the items could not be read")
        }
        return found
    }
}
