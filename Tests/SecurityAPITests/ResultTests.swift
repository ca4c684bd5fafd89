// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Results of a call")
struct ResultTests {
    private static let attributeKeys: Set<String> = [
        kSecAttrAccount, kSecAttrService, kSecAttrAccessGroup, kSecAttrCreationDate, kSecAttrModificationDate, kSecAttrAccessible,
        kSecAttrSynchronizable, "tomb", "musr", "sha1", kSecAttrAccessControl,
    ]

    private func keys(_ flags: [String]) -> [String: Any] {
        genericPassword(Dictionary(uniqueKeysWithValues: flags.map { ($0, true) }))
    }

    private func add(_ item: KeychainItem, _ dictionary: [String: Any]) -> CFTypeRef? {
        // The value before the call must not survive it.
        var result: CFTypeRef? = NSObject()
        let status = CurrentKeychain.with(RecordingKeychain(items: [item])) { unsafe SecItemAdd(dictionary, &result) }
        #expect(status == errSecSuccess)
        return result
    }

    private func find(_ items: [KeychainItem], _ dictionary: [String: Any]) -> CFTypeRef? {
        var result: CFTypeRef? = NSObject()
        let status = CurrentKeychain.with(RecordingKeychain(items: items)) { unsafe SecItemCopyMatching(dictionary, &result) }
        #expect(status == errSecSuccess)
        return result
    }

    // MARK: One found item

    @Test("Nothing is returned without return keys")
    func none() {
        #expect(find([.password()], genericPassword()) == nil)
        #expect(find([.password()], genericPassword([kSecReturnData: false])) == nil)
    }

    @Test("Passwords have no item reference")
    func reference() {
        #expect(find([.password()], keys([kSecReturnRef])) == nil)
        #expect(add(.password(), keys([kSecReturnRef])) == nil)
    }

    @Test("The secret is data; an item without a secret returns nothing")
    func data() {
        #expect(find([.password()], keys([kSecReturnData])) as? Data == Data("open sesame".utf8))
        #expect(find([.password(secret: Data())], keys([kSecReturnData])) as? Data == Data())
        #expect(find([.password(secret: nil)], keys([kSecReturnData])) == nil)
    }

    @Test("The persistent reference is data of twenty bytes")
    func persistentReference() {
        #expect(find([.password()], keys([kSecReturnPersistentRef])) as? Data == KeychainItem.persistentReference)
    }

    @Test("Attributes are a dictionary without class, secret and references")
    func attributes() throws {
        let result = find([.password([.label: .data(Data([1])), .creator: .number(5)])], keys([kSecReturnAttributes]))
        let dictionary = try #require(result as? [String: Any])
        #expect(Set(dictionary.keys) == Self.attributeKeys.union([kSecAttrLabel, kSecAttrCreator]))
        #expect(dictionary[kSecAttrAccount] as? String == "Skroob")
        #expect(dictionary[kSecAttrLabel] as? Data == Data([1]))
        #expect(dictionary[kSecAttrCreator] as? Int == 5)
        #expect(dictionary[kSecAttrAccessible] as? String == kSecAttrAccessibleWhenUnlocked)
        #expect(dictionary[kSecAttrSynchronizable] as? Int == 0)
        #expect(dictionary[kSecAttrSynchronizable] as? Bool == false)
        #expect(dictionary[kSecAttrSynchronizable] as? NSNumber == 0)
        #expect(dictionary["tomb"] as? Int == 0)
        #expect(dictionary["musr"] as? Data == Data())
        #expect(dictionary[kSecAttrCreationDate] as? Date == Date(timeIntervalSinceReferenceDate: 1000))
        #expect(dictionary[kSecAttrModificationDate] as? NSDate == NSDate(timeIntervalSinceReferenceDate: 2000))
        #expect(dictionary[kSecAttrAccessControl] as? SecAccessControl == SecAccessControl(AccessControl(.whenUnlocked)))
    }

    @Test("A dictionary of attributes can be cast to the types that programs use")
    func casts() throws {
        let result = find([.password()], keys([kSecReturnAttributes]))
        #expect((result as? [String: AnyHashable])?.count == Self.attributeKeys.count)
        #expect((result as? [String: AnyObject])?.count == Self.attributeKeys.count)
        #expect((result as? [AnyHashable: Any])?.count == Self.attributeKeys.count)
        let dictionary = try #require(result as? NSDictionary)
        #expect(dictionary[kSecAttrAccount] as? NSString == "Skroob")
        #expect(dictionary["sha1"] as? NSData == NSData(data: Data(count: 20)))
        #expect(dictionary["sha1"] as? Data == Data(count: 20))
    }

    @Test(
        "Several return keys return a dictionary with all values",
        arguments: [
            ([kSecReturnData, kSecReturnAttributes], attributeKeys.union([kSecValueData])),
            ([kSecReturnAttributes, kSecReturnPersistentRef], attributeKeys.union([kSecValuePersistentRef])),
            (
                [kSecReturnData, kSecReturnAttributes, kSecReturnPersistentRef],
                attributeKeys.union([kSecValueData, kSecValuePersistentRef])
            ),
            (
                [kSecReturnData, kSecReturnPersistentRef],
                attributeKeys.subtracting([kSecAttrAccessControl]).union([kSecValueData, kSecValuePersistentRef])
            ),
            ([kSecReturnRef, kSecReturnAttributes], attributeKeys.union([kSecClass])),
            ([kSecReturnRef, kSecReturnData], attributeKeys.subtracting([kSecAttrAccessControl]).union([kSecClass, kSecValueData])),
            ([kSecReturnRef, kSecReturnPersistentRef], [kSecClass, kSecValuePersistentRef]),
            (
                [kSecReturnRef, kSecReturnPersistentRef, kSecReturnAttributes, kSecReturnData],
                attributeKeys.union([kSecClass, kSecValuePersistentRef, kSecValueData])
            ),
        ] as [([String], Set<String>)])
    func several(flags: [String], expected: Set<String>) throws {
        let dictionary = try #require(find([.password()], keys(flags)) as? [String: Any])
        #expect(Set(dictionary.keys) == expected)
        if expected.contains(kSecClass) { #expect(dictionary[kSecClass] as? String == kSecClassGenericPassword) }
        if expected.contains(kSecValueData) { #expect(dictionary[kSecValueData] as? Data == Data("open sesame".utf8)) }
        if expected.contains(kSecValuePersistentRef) {
            #expect(dictionary[kSecValuePersistentRef] as? Data == KeychainItem.persistentReference)
        }
    }

    @Test("The dictionary of an item without a secret contains none")
    func noSecret() throws {
        let result = find([.password(secret: nil)], keys([kSecReturnData, kSecReturnAttributes]))
        #expect(try Set(#require(result as? [String: Any]).keys) == Self.attributeKeys)
    }

    @Test("The attributes of the primary key are always present")
    func primaryKey() throws {
        let reference = PersistentReference(itemClass: .internetPassword, id: ItemID(high: 1, low: 2))
        let item = KeychainItem(
            reference: reference, attributes: ItemAttributes([.account: .string("a")]), accessControl: AccessControl(.whenUnlocked),
            secret: nil)
        let dictionary = try #require(find([item], internetPassword([kSecReturnAttributes: true])) as? [String: Any])
        #expect(dictionary[kSecAttrAccount] as? String == "a")
        for key in [kSecAttrServer, kSecAttrSecurityDomain, kSecAttrAuthenticationType, kSecAttrPath] {
            #expect(dictionary[key] as? String == "")
        }
        for key in [kSecAttrPort, kSecAttrProtocol, kSecAttrSynchronizable] { #expect(dictionary[key] as? Int == 0) }
        #expect(dictionary[kSecAttrTokenID] == nil)
        #expect(dictionary[kSecAttrSyncViewHint] == nil)
    }

    @Test("A returned dictionary with the class added is a query")
    func roundTrip() throws {
        var dictionary = try #require(find([.password()], keys([kSecReturnAttributes])) as? [String: Any])
        dictionary[kSecClass] = kSecClassGenericPassword
        dictionary[kSecReturnData] = true
        #expect(find([.password()], dictionary) as? Data == Data("open sesame".utf8))
    }

    @Test("The dictionary of an item with constraints is a query once its access control or its accessibility is removed")
    func constrainedRoundTrip() throws {
        let item = KeychainItem.password(accessControl: AccessControl(.whenUnlocked, constraint: .userPresence))
        var dictionary = try #require(find([item], keys([kSecReturnAttributes])) as? [String: Any])
        dictionary[kSecClass] = kSecClassGenericPassword
        #expect(Verb.copyMatching.status(dictionary) == errSecParam)
        dictionary[kSecAttrAccessControl] = nil
        #expect(Verb.copyMatching.status(dictionary) == errSecSuccess)
    }

    // MARK: Many found items

    @Test(
        "With a limit other than one the result is an array, in the keychain's order",
        arguments: ([kSecMatchLimitAll, 5, 2] as [Any]).map(Unchecked.init))
    func array(limit: Unchecked) throws {
        let items = [KeychainItem.password([.account: .string("first")]), .password([.account: .string("second")], secret: nil)]
        let query = keys([kSecReturnAttributes, kSecReturnData]).merging([kSecMatchLimit: limit.any]) { $1 }
        let dictionaries = try #require(find(items, query) as? [[String: Any]])
        #expect(dictionaries.map { $0[kSecAttrAccount] as? String } == ["first", "second"])
        #expect(dictionaries.map { $0[kSecValueData] as? Data } == [Data("open sesame".utf8), nil])
    }

    @Test("One item is an array too, if the limit is not one")
    func arrayOfOne() {
        let query = keys([kSecReturnData]).merging([kSecMatchLimit: kSecMatchLimitAll]) { $1 }
        #expect(find([.password()], query) as? [Data] == [Data("open sesame".utf8)])
    }

    @Test("Items without a secret are left out of an array of secrets")
    func arrayOfSecrets() {
        let query = keys([kSecReturnData]).merging([kSecMatchLimit: kSecMatchLimitAll]) { $1 }
        #expect(find([.password(secret: nil), .password()], query) as? [Data] == [Data("open sesame".utf8)])
        #expect(find([.password(secret: nil)], query) as? [Data] == [])
    }

    @Test("An array of persistent references")
    func arrayOfReferences() {
        let query = keys([kSecReturnPersistentRef]).merging([kSecMatchLimit: kSecMatchLimitAll]) { $1 }
        #expect(
            find([.password(), .password()], query) as? [Data] == [KeychainItem.persistentReference, KeychainItem.persistentReference])
    }

    @Test("Several items without return keys are an empty array", arguments: [[], [kSecReturnRef]])
    func emptyArray(flags: [String]) {
        let query = keys(flags).merging([kSecMatchLimit: kSecMatchLimitAll]) { $1 }
        #expect((find([.password(), .password()], query) as? [Any])?.count == 0)
    }

    @Test("An array of dictionaries can be cast to the types that programs use")
    func arrayCasts() throws {
        let items = [KeychainItem.password(), .password([.label: .string("l")]), .password()]
        let query = keys([kSecReturnAttributes]).merging([kSecMatchLimit: kSecMatchLimitAll]) { $1 }
        let result = find(items, query)
        let counts = [11, 12, 11]
        #expect((result as? [[String: Any]])?.map(\.count) == counts)
        #expect((result as? [[String: AnyHashable]])?.map(\.count) == counts)
        #expect((result as? [[String: AnyObject]])?.map(\.count) == counts)
        #expect((result as? [[AnyHashable: Any]])?.map(\.count) == counts)
        #expect((result as? [NSDictionary])?.map(\.count) == counts)
        #expect((result as? [Any])?.compactMap { ($0 as? [String: Any])?.count } == counts)
        #expect((result as? [AnyObject])?.compactMap { ($0 as? NSDictionary)?.count } == counts)
        let array = try #require(result as? NSArray)
        #expect(array.count == 3)
        #expect(array.compactMap { ($0 as? NSDictionary)?[kSecAttrAccount] as? String } == ["Skroob", "Skroob", "Skroob"])
        #expect((array.firstObject as? [String: Any])?[kSecAttrAccount] as? String == "Skroob")
        #expect((array[1] as? [String: Any])?[kSecAttrLabel] as? String == "l")
        #expect((array.mutableCopy() as? NSMutableArray)?.count == 3)
        #expect((array.copy() as? [[String: Any]])?.count == 3)
        #expect(array.isEqual(find(items, query)))
        #expect(!array.isEqual(find([.password()], query)))
    }

    // MARK: A new item

    @Test("Adding an item returns the requested values")
    func added() throws {
        #expect(add(.password(), genericPassword()) == nil)
        #expect(add(.password(), keys([kSecReturnData])) as? Data == Data("open sesame".utf8))
        #expect(add(.password(secret: nil), keys([kSecReturnData])) as? Data == Data())
        #expect(add(.password(), keys([kSecReturnPersistentRef])) as? Data == KeychainItem.persistentReference)
        let both = try #require(add(.password(), keys([kSecReturnData, kSecReturnPersistentRef])) as? [String: Any])
        #expect(Set(both.keys) == [kSecValueData, kSecValuePersistentRef])
    }

    @Test("The attributes of a new item omit internal attributes of the keychain")
    func addedAttributes() throws {
        let plain = Self.attributeKeys.subtracting(["tomb", "musr", kSecAttrAccessControl])
        #expect(try Set(#require(add(.password(), keys([kSecReturnAttributes])) as? [String: Any]).keys) == plain)
        let data = try #require(add(.password(), keys([kSecReturnAttributes, kSecReturnData])) as? [String: Any])
        #expect(Set(data.keys) == plain.union([kSecValueData]))
        let reference = try #require(add(.password(), keys([kSecReturnAttributes, kSecReturnRef])) as? [String: Any])
        #expect(Set(reference.keys) == plain.union([kSecClass]))
    }

    @Test("The access control of a new item is returned only if the caller supplied one")
    func addedAccessControl() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [])
        let dictionary = keys([kSecReturnAttributes]).merging([kSecAttrAccessControl: object]) { $1 }
        let result = try #require(add(.password(), dictionary) as? [String: Any])
        #expect(result[kSecAttrAccessControl] as? SecAccessControl == object)
    }

    // MARK: Failure

    @Test("A failed call does not change the caller's variable")
    func failure() {
        var result: CFTypeRef? = NSNull()
        let status = CurrentKeychain.with(RecordingKeychain(items: [])) { unsafe SecItemCopyMatching(keys([kSecReturnData]), &result) }
        #expect(status == errSecItemNotFound)
        #expect(result is NSNull)
    }
}

@Suite("Returned data")
struct ResultDataTests {
    @Test("Returned data can be cast to Data, byte for byte", arguments: [0, 1, 2, 14, 15, 16, 40, 1000, 1 << 20])
    func casts(byteCount: Int) {
        let data = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let object: CFTypeRef = ResultData.object(data)
        #expect(object as? Data == data)
        #expect((object as? NSData)?.length == byteCount)
        #expect((object as? NSData).map { Data(referencing: $0) } == data)
    }

    @Test("Returned data behaves like any other NSData")
    func equality() throws {
        let data = Data("open sesame".utf8)
        let object = ResultData.object(data)
        let plain = NSData(data: data)
        #expect(object.isEqual(plain))
        #expect(plain.isEqual(object))
        #expect(object.isEqual(to: data))
        #expect(object.hash == plain.hash)
        #expect(object.description == plain.description)
        #expect(object.base64EncodedString() == data.base64EncodedString())
        #expect(object.subdata(with: NSRange(location: 5, length: 3)) == Data("ses".utf8))
        #expect(object.copy() as? Data == data)
        #expect((object.mutableCopy() as? NSMutableData)?.length == data.count)
        #expect(String(data: try #require(object as AnyObject as? Data), encoding: .utf8) == "open sesame")
        #expect(CFGetTypeID(object) == CFDataGetTypeID())
    }

    @Test("Data in a returned dictionary can be cast to Data")
    func nested() {
        let data = Data("open sesame".utf8)
        let dictionary: CFTypeRef = ["key": ResultData.object(data)] as NSDictionary
        #expect((dictionary as? [String: Any])?["key"] as? Data == data)
        #expect((dictionary as? [String: AnyHashable])?["key"] as? Data == data)
        #expect((dictionary as? NSDictionary)?["key"] as? Data == data)
    }

    @Test("A slice is returned without the rest of its buffer")
    func slice() {
        #expect(ResultData.object(Data([1, 2, 3, 4]).dropFirst(2)) as CFTypeRef as? Data == Data([3, 4]))
    }
}
