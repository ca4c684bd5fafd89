// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Locksmith
import Testing

/// Follows one attribute through the keychain: set, stored under its key, read in its type, found by it, updated.
struct AttributeCheck<Password: CreateableSecureStorable & DeleteableSecureStorable, Result> {
    let itemClass: CFString
    let password: Password
    let read: (Password) throws -> Result?

    // `tellsApart`: whether another value makes another item. `stored`: what is in the item, in the attribute's type.
    func callAsFunction<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout Password, Value) -> Void,
        get: (Result) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }
    ) throws {
        var password = password
        set(&password, first)
        var other = password
        set(&other, second)

        try password.createInSecureStore()
        #expect(stored(try RawItems.only(itemClass: itemClass as String)[key as String]) == first)
        #expect(try read(password).flatMap(get) == first)
        #expect(try read(other) == nil, "Nothing has the other value")

        try other.updateInSecureStore()
        let values = try RawItems.all(itemClass: itemClass as String).map { stored($0[key as String]) }
        #expect(values == (tellsApart ? [first, second] : [second]))
        #expect(try read(other).flatMap(get) == second)
        #expect(try read(password).flatMap(get) == (tellsApart ? first : nil))

        if !tellsApart { #expect(throws: LocksmithError.notFound) { try password.deleteFromSecureStore() } }
        try other.deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: itemClass as String).count == (tellsApart ? 1 : 0))
    }
}
