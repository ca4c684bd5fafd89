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

    private static func accounts(_ service: String) throws -> Set<String> {
        var query: [String: Any] = query(service)
        query[kSecMatchLimit as String] = kSecMatchLimitAll as String
        query[kSecReturnAttributes as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        if status == errSecItemNotFound { return [] }
        guard status == errSecSuccess, let found = result as? [[String: Any]] else {
            throw KeychainFailure(KeychainStatus(rawValue: status), "the items could not be read")
        }
        return try Set(
            found.map { attributes in
                guard let account = attributes[kSecAttrAccount as String] as? String else { throw MigrationError.keyToMigrateInvalid }
                return account
            })
    }
}
