// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// A valet of one of the three types, each with what it can do.
enum ChosenValet: Equatable {
    case plain(Valet)
    case secureEnclave(SecureEnclaveValet)
    case singlePrompt(SinglePromptSecureEnclaveValet)

    /// Whether somebody is asked before a secret can be read.
    var asks: Bool {
        if case .plain = self { false } else { true }
    }

    var identifier: Identifier {
        switch self {
        case .plain(let valet): valet.identifier
        case .secureEnclave(let valet): valet.identifier
        case .singlePrompt(let valet): valet.identifier
        }
    }

    /// What Keychain Services is given to find the items.
    var itemQuery: [String: Any] {
        switch self {
        case .plain(let valet): valet.itemQuery
        case .secureEnclave(let valet): valet.itemQuery
        case .singlePrompt(let valet): valet.itemQuery
        }
    }

    /// What Keychain Services is given to add an item.
    func newItem(forKey key: String, value: Data) throws(KeychainError) -> [String: Any] {
        switch self {
        case .plain(let valet): try valet.newItem(forKey: key, value: value)
        case .secureEnclave(let valet): try valet.newItem(forKey: key, value: value)
        case .singlePrompt(let valet): try valet.newItem(forKey: key, value: value)
        }
    }

    func object(forKey key: String, reason: String) throws(KeychainError) -> Data {
        switch self {
        case .plain(let valet): try valet.object(forKey: key)
        case .secureEnclave(let valet): try valet.object(forKey: key, withPrompt: reason)
        case .singlePrompt(let valet): try valet.object(forKey: key, withPrompt: reason)
        }
    }

    func setObject(_ object: Data, forKey key: String) throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.setObject(object, forKey: key)
        case .secureEnclave(let valet): try valet.setObject(object, forKey: key)
        case .singlePrompt(let valet): try valet.setObject(object, forKey: key)
        }
    }

    func containsObject(forKey key: String) throws(KeychainError) -> Bool {
        switch self {
        case .plain(let valet): try valet.containsObject(forKey: key)
        case .secureEnclave(let valet): try valet.containsObject(forKey: key)
        case .singlePrompt(let valet): try valet.containsObject(forKey: key)
        }
    }

    func removeObject(forKey key: String) throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.removeObject(forKey: key)
        case .secureEnclave(let valet): try valet.removeObject(forKey: key)
        case .singlePrompt(let valet): try valet.removeObject(forKey: key)
        }
    }

    func removeAllObjects() throws(KeychainError) {
        switch self {
        case .plain(let valet): try valet.removeAllObjects()
        case .secureEnclave(let valet): try valet.removeAllObjects()
        case .singlePrompt(let valet): try valet.removeAllObjects()
        }
    }

    func migrateObjects(from source: Valet, removeOnCompletion: Bool) throws {
        switch self {
        case .plain(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        case .secureEnclave(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        case .singlePrompt(let valet): try valet.migrateObjects(from: source, removeOnCompletion: removeOnCompletion)
        }
    }

    func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws {
        switch self {
        case .plain(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        case .secureEnclave(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        case .singlePrompt(let valet): try valet.migrateObjects(matching: query, removeOnCompletion: removeOnCompletion)
        }
    }
}
