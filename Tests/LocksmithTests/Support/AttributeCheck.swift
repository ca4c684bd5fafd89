// SPDX-License-Identifier: Apache-2.0

import KeychainServices
import Locksmith
import Testing

/// Follows one attribute through the keychain: set, stored under its key, read in its type, found by it, updated.
struct AttributeCheck<Subject, Result> {
    let password: Subject
    let asPassword: (Subject) -> any Password
    let read: (Subject) throws -> Result?

    // `tellsApart`: whether another value makes another item. `stored`: what is in the item, in the attribute's type.
    func callAsFunction<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout Subject, Value) -> Void,
        get: (Result) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }, unasked: (inout Subject, String) -> Void
    ) throws {
        var password = password
        set(&password, first)
        var other = password
        set(&other, second)
        let itemClass = asPassword(password).asDeleteableSecureStoragePropertyDictionary[kSecClass as String] as? String ?? ""

        try asPassword(password).createInSecureStore()
        #expect(stored(try RawItems.only(itemClass: itemClass)[key as String]) == first)
        #expect(try read(password).flatMap(get) == first)
        #expect(try read(other) == nil, "Nothing has the other value")
        // Asked for with the other value, which the request then leaves out: what is read is what is stored.
        var unawares = other
        unasked(&unawares, key as String)
        #expect(try read(unawares).flatMap(get) == first)

        try asPassword(other).updateInSecureStore()
        let values = try RawItems.all(itemClass: itemClass).map { stored($0[key as String]) }
        #expect(values == (tellsApart ? [first, second] : [second]))
        #expect(try read(other).flatMap(get) == second)
        #expect(try read(password).flatMap(get) == (tellsApart ? first : nil))

        if !tellsApart { #expect(throws: LocksmithError.notFound) { try asPassword(password).deleteFromSecureStore() } }
        try asPassword(other).deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: itemClass).count == (tellsApart ? 1 : 0))
        if tellsApart { try asPassword(password).deleteFromSecureStore() }
    }
}

extension AttributeCheck where Subject: Password {
    init(_ password: Subject, read: @escaping (Subject) throws -> Result?) {
        self.init(password: password, asPassword: { $0 }, read: read)
    }

    func callAsFunction<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout Subject, Value) -> Void,
        get: (Result) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }
    ) throws {
        try self(key, first, second, tellsApart: tellsApart, set: set, get: get, stored: stored, unasked: { $0.unasked = $1 })
    }
}
