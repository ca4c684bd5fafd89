// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestSupport
import Valet

extension ChildCommand {
    /// Stores, overwrites and removes every marked text; then, for each line of input, does it once more.
    static func leaveTraces(_ arguments: [String]) throws {
        let valet = try testValet(Marker.valetIdentifier.rawValue)
        repeat {
            try leaveTracesOnce(valet)
            say("ready")
        } while readLine() != nil
    }

    static func leaveTracesOnce(_ valet: Valet) throws {
        try valet.setString(Marker.overwrittenValue.rawValue, forKey: Marker.key.rawValue)
        try valet.setString(Marker.value.rawValue, forKey: Marker.key.rawValue)
        try valet.setString(Marker.removedValue.rawValue, forKey: Marker.removedKey.rawValue)
        try valet.removeObject(forKey: Marker.removedKey.rawValue)
        try valet.setString(Marker.damagedValue.rawValue, forKey: "damaged")
        guard try valet.string(forKey: Marker.key.rawValue) == Marker.value.rawValue else { throw BadArguments() }
        try leaveTracesOfEveryAttribute()
    }

    private static func leaveTracesOfEveryAttribute() throws {
        let value = Data(Marker.value.rawValue.utf8)
        try addAndRead([
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: Marker.service.rawValue,
            kSecAttrAccount as String: Marker.account.rawValue, kSecAttrLabel as String: Marker.label.rawValue,
            kSecAttrComment as String: Marker.comment.rawValue, kSecAttrGeneric as String: Data(Marker.generic.rawValue.utf8),
            kSecAttrAccessGroup as String: Marker.group.rawValue, kSecValueData as String: value,
        ])
        try addAndRead([
            kSecClass as String: kSecClassInternetPassword, kSecAttrServer as String: Marker.server.rawValue,
            kSecAttrAccount as String: Marker.account.rawValue, kSecAttrPath as String: Marker.path.rawValue,
            kSecAttrSecurityDomain as String: Marker.securityDomain.rawValue, kSecAttrSynchronizable as String: true,
            kSecValueData as String: value,
        ])
    }

    private static func addAndRead(_ attributes: [String: Any]) throws {
        let status = SecItemAdd(attributes as CFDictionary, nil)
        guard status == errSecSuccess || status == errSecDuplicateItem else { throw BadStatus(status: status) }
        var query = attributes
        query[kSecValueData as String] = nil
        query[kSecReturnData as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let found = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        guard found == errSecSuccess, result as? Data == attributes[kSecValueData as String] as? Data else {
            throw BadStatus(status: found)
        }
        // Removed and added again the next time: what is removed must leave no trace either.
        query[kSecReturnData as String] = nil
        let removed = SecItemDelete(query as CFDictionary)
        guard removed == errSecSuccess else { throw BadStatus(status: removed) }
        let added = SecItemAdd(attributes as CFDictionary, nil)
        guard added == errSecSuccess else { throw BadStatus(status: added) }
    }

    private struct BadStatus: Error {
        let status: OSStatus
    }
}
