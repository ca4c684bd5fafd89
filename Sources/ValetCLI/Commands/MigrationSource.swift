// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainServices
import Valet

/// The source of `valet migrate`.
enum MigrationSource {
    case valet(Valet, Entitlements)
    /// The items that match a query. A person authenticates once for all of them.
    case items([String: AnyHashable], Entitlements)

    /// The items with one service, and with this accessibility and access group unless they are nil; the authentication prompt shows `reason`.
    static func service(
        _ service: String, _ accessibility: AccessibilityOption?, group: String?, isCloud: Bool, reason: String,
        _ entitlements: Entitlements
    ) -> MigrationSource {
        var query: [String: AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service,
        ]
        if let accessibility { query[kSecAttrAccessible as String] = accessibility.itemAccessibility.rawValue }
        if let group { query[kSecAttrAccessGroup as String] = group }
        if isCloud { query[kSecAttrSynchronizable as String] = true }
        return .items(withAuthentication(reason, in: query), entitlements)
    }

    /// The items of a valet; the authentication prompt shows `reason`.
    static func valet(_ valet: any ValetProtocol, reason: String, _ entitlements: Entitlements) -> MigrationSource {
        if let valet = valet as? Valet { return .valet(valet, entitlements) }
        return .items(withAuthentication(reason, in: valet.itemQuery.compactMapValues { $0 as? AnyHashable }), entitlements)
    }

    private static func withAuthentication(_ reason: String, in query: [String: AnyHashable]) -> [String: AnyHashable] {
        let context = LAContext()
        context.localizedReason = reason
        return query.merging([kSecUseAuthenticationContext as String: context]) { _, new in new }
    }

    /// The entitlements for reading the source and writing the destination.
    var entitlements: Entitlements {
        switch self {
        case .valet(_, let entitlements), .items(_, let entitlements): entitlements
        }
    }

    /// Whether the items of a place belong to the source.
    func contains(_ place: ItemPlace) -> Bool {
        let query: [String: Any] =
            switch self {
            case .valet(let valet, _): valet.itemQuery
            case .items(let query, _): query
            }
        func isSelected(_ attribute: CFString, _ value: String) -> Bool {
            (query[attribute as String] as? String).map { $0 == value } ?? true
        }
        return isSelected(kSecAttrService, place.service) && isSelected(kSecAttrAccessGroup, place.accessGroup)
            && isSelected(kSecAttrAccessible, place.accessibility.rawValue)
            && (query[kSecAttrSynchronizable as String] as? Bool ?? false) == place.isSynchronizable
    }

    func migrate(into destination: any ValetProtocol, removingOriginals: Bool) throws {
        switch self {
        case .valet(let valet, _):
            try destination.migrateObjects(from: valet, removeOnCompletion: removingOriginals)
        case .items(let query, _):
            try destination.migrateObjects(matching: query, removeOnCompletion: removingOriginals)
        }
    }

    func keys() throws -> [String] {
        switch self {
        case .valet(let valet, _): return try valet.keyList(userPrompt: "", isComplete: true).keys
        case .items(let query, _): return try Self.accounts(query)
        }
    }

    private static func accounts(_ query: [String: Any]) throws -> [String] {
        var found: Set<[UInt8]> = []
        return try find(query).map { attributes in
            guard let key = ItemKey.text(ofAccount: attributes[kSecAttrAccount as String]) else {
                throw MigrationError.keyToMigrateInvalid
            }
            return key
        }.filter { found.insert(Array($0.utf8)).inserted }
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
