// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices

/// What a call answered: its status and what it delivered.
struct Answer {
    let status: OSStatus
    let result: CFTypeRef?

    var data: Data? { result as? Data }
    var attributes: ItemDictionary? { result as? ItemDictionary }
    var array: [Any]? { result as? [Any] }
    var dataArray: [Data]? { result as? [Data] }
    var attributesArray: [ItemDictionary]? { result as? [ItemDictionary] }
}

// The pointer that each call gets is to a variable of the caller and used only during the call.

@discardableResult
func add(_ attributes: ItemDictionary) -> Answer {
    var result: CFTypeRef?
    let status = unsafe SecItemAdd(attributes as CFDictionary, &result)
    return Answer(status: status, result: result)
}

func find(_ query: ItemDictionary) -> Answer {
    var result: CFTypeRef?
    let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
    return Answer(status: status, result: result)
}

func update(_ query: ItemDictionary, _ attributesToUpdate: ItemDictionary) -> OSStatus {
    SecItemUpdate(query as CFDictionary, attributesToUpdate as CFDictionary)
}

func delete(_ query: ItemDictionary) -> OSStatus {
    SecItemDelete(query as CFDictionary)
}

/// The attributes of the one item that matches.
func attributes(of query: ItemDictionary) -> ItemDictionary? {
    find(query.with(kSecReturnAttributes, true)).attributes
}

/// The secret of the one item that matches.
func secret(of query: ItemDictionary) -> Data? {
    find(query.with(kSecReturnData, true)).data
}

/// How many items match.
func count(of query: ItemDictionary) -> Int {
    find(query.with([kSecReturnPersistentRef: true, kSecMatchLimit: kSecMatchLimitAll])).dataArray?.count ?? 0
}
