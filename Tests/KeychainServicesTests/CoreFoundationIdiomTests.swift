// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase, NeverForceUnwrap, NeverUseImplicitlyUnwrappedOptionals
// The idioms of others, as they are written.

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

// Constants as some wrappers declare them.
private let SecClass: String! = kSecClass as String
private let SecAttrAccount: String! = kSecAttrAccount as String
private let SecReturnData: String! = kSecReturnData as String
private let SecMatchLimit: String! = kSecMatchLimit as String

@Suite("Idioms of code for Apple platforms: functions as values, implicitly unwrapped keys, Core Foundation", .inMemoryKeychain)
struct CoreFoundationIdiomTests {
    private let secret = "open sesame".data(using: .utf8)!

    private func addItem() {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob", kSecValueData as String: secret,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    }

    // MARK: Functions as values

    /// The functions of the keychain, so that tests can replace them.
    private struct KeychainFunctions {
        var add = SecItemAdd
        var copyMatching = SecItemCopyMatching
        var update = SecItemUpdate
        var delete = SecItemDelete
    }

    @Test("Functions as default values of properties")
    func functionProperties() {
        let functions = KeychainFunctions()
        let item = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob", kSecValueData: secret] as CFDictionary
        #expect(functions.add(item, nil) == errSecSuccess)
        let query = [kSecClass: kSecClassGenericPassword, kSecReturnData: true] as CFDictionary
        var result: CFTypeRef?
        #expect(functions.copyMatching(query, &result) == errSecSuccess)
        #expect(result as? Data == secret)
        let all = [kSecClass: kSecClassGenericPassword] as CFDictionary
        #expect(functions.update(all, [kSecAttrLabel: "l"] as CFDictionary) == errSecSuccess)
        #expect(functions.delete(all) == errSecSuccess)
    }

    @Test("Functions as constants, with and without a type, and as default arguments")
    func functionConstants() {
        let add = SecItemAdd
        let typed: (CFDictionary, UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus = SecItemCopyMatching
        func remove(_ query: CFDictionary, with delete: (CFDictionary) -> OSStatus = SecItemDelete) -> OSStatus { delete(query) }
        let item = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob"] as CFDictionary
        #expect(add(item, nil) == errSecSuccess)
        #expect(typed(item, nil) == errSecSuccess)
        #expect(remove(item) == errSecSuccess)
        let makeAccessControl = SecAccessControlCreateWithFlags
        #expect(makeAccessControl(nil, kSecAttrAccessibleWhenUnlocked, [], nil) != nil)
    }

    @Test("A Foundation dictionary is still accepted by each function, alone and next to a Swift dictionary")
    func foundationDictionaries() {
        let item: NSMutableDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob"]
        let changes: NSDictionary = [kSecAttrLabel: "l"]
        let query: NSDictionary = [kSecClass: kSecClassGenericPassword]
        #expect(SecItemAdd(item, nil) == errSecSuccess)
        #expect(SecItemUpdate(query, changes) == errSecSuccess)
        #expect(SecItemUpdate(query, [kSecAttrLabel: "m"] as CFDictionary) == errSecSuccess)
        #expect(SecItemUpdate([kSecClass: kSecClassGenericPassword] as CFDictionary, changes) == errSecSuccess)
        var result: AnyObject?
        #expect(SecItemCopyMatching(query, &result) == errSecSuccess)
        #expect(SecItemDelete(query) == errSecSuccess)
    }

    // MARK: Implicitly unwrapped keys and values

    @Test("Implicitly unwrapped keys and values: in a literal `as CFDictionary`, and in a dictionary with a type")
    func implicitlyUnwrapped() {
        addItem()
        let account: String! = "Skroob"
        var result: CFTypeRef?
        let literal =
            [SecClass: kSecClassGenericPassword, SecAttrAccount: account!, SecReturnData: true, SecMatchLimit: kSecMatchLimitOne]
            as CFDictionary
        #expect(SecItemCopyMatching(literal, &result) == errSecSuccess)
        #expect(result as? Data == secret)
        var query: [String: Any] = [SecClass: kSecClassGenericPassword, SecAttrAccount: account!]
        query[SecReturnData] = kCFBooleanTrue
        query[SecMatchLimit] = kSecMatchLimitOne
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == secret)
    }

    // MARK: Core Foundation

    @Test("A mutable dictionary from CFDictionaryCreateMutable, with callbacks and without")
    func mutableDictionary() {
        var keyCallBacks = kCFTypeDictionaryKeyCallBacks
        var valueCallBacks = kCFTypeDictionaryValueCallBacks
        let item: CFMutableDictionary = CFDictionaryCreateMutable(kCFAllocatorDefault, 0, &keyCallBacks, &valueCallBacks)
        (item as NSMutableDictionary)[kSecClass as String] = kSecClassGenericPassword
        (item as NSMutableDictionary)[kSecAttrAccount as String] = "Skroob"
        (item as NSMutableDictionary)[kSecValueData as String] = secret
        #expect(CFDictionaryGetCount(item) == 3)
        #expect(SecItemAdd(item, nil) == errSecSuccess)
        let empty = CFDictionaryCreateMutable(nil, 0, nil, nil)!
        #expect(CFDictionaryGetCount(empty) == 0)
        #expect(SecItemDelete(empty) == errSecParam)
    }

    @Test("A mutable copy of a dictionary does not change the original")
    func mutableCopy() {
        addItem()
        let base = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob"] as CFDictionary
        let query = CFDictionaryCreateMutableCopy(nil, 0, base)! as NSMutableDictionary
        query[kSecReturnData as String] = kCFBooleanTrue
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query, &result) == errSecSuccess)
        #expect(result as? Data == secret)
        #expect(CFDictionaryGetCount(base) == 2)
        let second = CFDictionaryCreateMutableCopy(nil, 0, query)!
        CFDictionaryRemoveAllValues(second)
        #expect(CFDictionaryGetCount(query) == 3)
        #expect(CFDictionaryGetCount(second) == 0)
    }

    @Test("Data: CFDataCreate, CFDataGetLength, CFDataGetBytePtr")
    func data() throws {
        let bytes: [UInt8] = Array(secret)
        let item: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob", kSecValueData: CFDataCreate(nil, bytes, bytes.count)!,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecReturnData: true]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        let data = result as! CFData
        #expect(CFGetTypeID(data) == CFDataGetTypeID())
        let length = CFDataGetLength(data)
        let read = withExtendedLifetime(data) { Data(bytes: CFDataGetBytePtr(data), count: length) }
        #expect(read == secret)
        #expect(data as Data == secret)
        #expect(CFDataGetLength(secret as CFData) == secret.count)
        #expect(CFDataGetLength(CFDataCreate(nil, nil, 0)) == 0)
        #expect(CFDataCreate(nil, bytes, -1) == nil)
    }

    @Test("Strings: CFStringCreateWithCString, CFStringCreateFromExternalRepresentation")
    func strings() {
        let utf8 = CFStringBuiltInEncodings.UTF8.rawValue
        #expect(CFStringCreateWithCString(kCFAllocatorDefault, "Skroob ✓", utf8) as String == "Skroob ✓")
        #expect(CFStringCreateWithCString(nil, "\u{e9}", CFStringBuiltInEncodings.ASCII.rawValue) == nil)
        #expect(CFStringCreateWithCString(nil, "Skroob", CFStringBuiltInEncodings.ASCII.rawValue) as String == "Skroob")
        let utf16 = Data([0xfe, 0xff, 0x00, 0x41]) as CFData
        #expect(CFStringCreateFromExternalRepresentation(nil, utf16, CFStringBuiltInEncodings.UTF16.rawValue) as String == "A")
        #expect(CFStringCreateFromExternalRepresentation(nil, secret as CFData, utf8) as String == "open sesame")
        #expect(CFStringCreateFromExternalRepresentation(nil, Data([0xff]) as CFData, utf8) == nil)
        #expect(CFStringCreateFromExternalRepresentation(nil, secret as CFData, 7) == nil)
    }

    @Test("Arrays: CFArrayGetCount of a result")
    func arrays() {
        addItem()
        let query: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecReturnAttributes: true, kSecMatchLimit: kSecMatchLimitAll,
        ]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        let items = result as! CFArray
        #expect(CFArrayGetCount(items) == 1)
    }
}

// Code that mentions the types of certificates and keys.

private enum Credential: Hashable {
    case password(String)
    case certificate(SecCertificate)
    case identity(SecIdentity)
    case key(SecKey)
}

private protocol TrustEvaluator {
    func evaluate(_ trust: SecTrust, certificates: [SecCertificate]) throws -> SecKey?
}

@Suite("Types of certificates and keys", .inMemoryKeychain)
struct UnsupportedTypeTests {
    private func credential(of object: CFTypeRef) -> Credential? {
        if let text = object as? String { return .password(text) }
        switch CFGetTypeID(object) {
        case SecCertificateGetTypeID(): return .certificate(object as! SecCertificate)
        case SecIdentityGetTypeID(): return .identity(object as! SecIdentity)
        case SecKeyGetTypeID(): return .key(object as! SecKey)
        default: return nil
        }
    }

    @Test("No object has one of the types, and their type numbers are distinct")
    func noValues() throws {
        let accessControl = try #require(SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, [], nil))
        for object in [NSData(), NSDictionary(), NSNumber(value: 1), accessControl, NSObject()] as [CFTypeRef] {
            #expect(credential(of: object) == nil)
            #expect((object as? SecKey) == nil && (object as? SecTrust) == nil)
        }
        #expect(credential(of: "a" as CFTypeRef) == .password("a"))
        let numbers = [
            SecKeyGetTypeID(), SecCertificateGetTypeID(), SecIdentityGetTypeID(), SecTrustGetTypeID(), SecAccessControlGetTypeID(), 0,
        ]
        #expect(Set(numbers).count == numbers.count)
    }

    @Test(
        "Items of these classes are refused, not reported as missing",
        arguments: [kSecClassCertificate, kSecClassKey, kSecClassIdentity])
    func items(itemClass: CFString) {
        let query: [CFString: Any] = [kSecClass: itemClass, kSecReturnRef: true]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecUnimplemented)
        #expect((result as? SecKey) == nil)
        #expect(SecItemAdd([kSecClass: itemClass] as CFDictionary, nil) == errSecUnimplemented)
        #expect(SecItemDelete([kSecClass: itemClass] as CFDictionary) == errSecUnimplemented)
    }
}
