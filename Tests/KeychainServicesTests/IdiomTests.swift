// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NeverForceUnwrap
// Idioms of existing programs, unchanged.

import Foundation
import KeychainServices
import KeychainTestingTraits
import Testing

@Suite("Idioms of code for Apple platforms", .inMemoryKeychain)
struct IdiomTests {
    private let secret = "open sesame".data(using: .utf8)!

    private func addItem(account: String = "Skroob") {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "luggage", kSecAttrAccount as String: account,
            kSecValueData as String: secret,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    }

    // MARK: Keys and dictionaries

    @Test("Constants as keys: `kSecClass as String` in [String: Any]")
    func asString() {
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: "luggage",
            kSecAttrAccount as String: "Skroob", kSecValueData as String: secret,
        ]
        #expect(SecItemAdd(query as CFDictionary, nil) == errSecSuccess)
    }

    @Test("Constants as keys: `String(kSecClass)`")
    func stringInitializer() {
        addItem()
        let query = [String(kSecClass): String(kSecClassGenericPassword), String(kSecAttrAccount): "Skroob"]
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
    }

    @Test("Constants as keys: [CFString: Any]")
    func cfStringKeys() {
        addItem()
        let query: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob", kSecReturnData: true]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == secret)
    }

    @Test("[String: AnyHashable], with an access control object inside")
    func anyHashable() {
        var error: Unmanaged<CFError>?
        let accessControl = SecAccessControlCreateWithFlags(kCFAllocatorDefault, kSecAttrAccessibleWhenUnlocked, [], &error)
        let item: [String: AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "luggage", kSecAttrAccount as String: "Skroob",
            kSecAttrAccessControl as String: accessControl!, kSecValueData as String: secret, kSecAttrIsInvisible as String: true,
            kSecAttrType as String: 5,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        let query: [String: AnyHashable] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "luggage", kSecReturnData as String: true,
        ]
        var result: AnyObject?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == secret)
        #expect(item[kSecAttrAccessControl as String] == AnyHashable(accessControl!))
    }

    @Test("[String: AnyObject] and [String: NSObject]")
    func objects() {
        addItem()
        let query: [String: AnyObject] = [
            kSecClass as String: kSecClassGenericPassword as AnyObject, kSecAttrAccount as String: "Skroob" as AnyObject,
            kSecReturnData as String: kCFBooleanTrue,
        ]
        var result: AnyObject?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == secret)
        let other: [String: NSObject] = [
            kSecClass as String: kSecClassGenericPassword as NSString, kSecAttrAccount as String: "Skroob" as NSString,
        ]
        #expect(SecItemDelete(other as CFDictionary) == errSecSuccess)
    }

    @Test("A literal `as CFDictionary`, and a variable of that type")
    func literal() {
        addItem()
        let query = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob", kSecMatchLimit: kSecMatchLimitOne] as CFDictionary
        #expect(SecItemCopyMatching(query, nil) == errSecSuccess)
        let typed: CFDictionary = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "Skroob"] as CFDictionary
        #expect(SecItemUpdate(typed, [kSecAttrLabel: "l"] as CFDictionary) == errSecSuccess)
        #expect(SecItemDelete([kSecClass as String: kSecClassGenericPassword] as CFDictionary) == errSecSuccess)
    }

    @Test("An NSDictionary, passed directly")
    func foundationDictionary() {
        addItem()
        let query = NSMutableDictionary()
        query[kSecClass as NSString] = kSecClassGenericPassword
        query[kSecAttrAccount as NSString] = NSString(string: "Skroob")
        query[kSecReturnData as NSString] = NSNumber(value: true)
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query, &result) == errSecSuccess)
        #expect(result as? NSData == NSData(data: secret))
        #expect(SecItemDelete(NSDictionary(dictionary: [kSecClass: kSecClassGenericPassword])) == errSecSuccess)
    }

    @Test("Core Foundation's casts: `as CFString`, `as CFData`, `as CFNumber`, `as CFBoolean`, `as CFDate`, `as CFTypeRef`")
    func casts() {
        let item: [CFString: Any] = [
            kSecClass: kSecClassInternetPassword, kSecAttrServer: "example.com" as CFString, kSecAttrPort: 443 as CFNumber,
            kSecAttrIsInvisible: true as CFBoolean, kSecAttrCreationDate: Date() as CFDate, kSecValueData: secret as CFData,
            kSecAttrProtocol: kSecAttrProtocolHTTPS, kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked as CFTypeRef,
            kSecAttrAuthenticationType: kSecAttrAuthenticationTypeHTTPBasic,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    }

    @Test(
        "Booleans: `kCFBooleanTrue!`, `kCFBooleanTrue`, `kCFBooleanTrue as Any`, `true`, `NSNumber(value: true)`, `NSNumber(booleanLiteral:)`"
    )
    func booleans() {
        addItem()
        let values: [Any] = [
            kCFBooleanTrue!, kCFBooleanTrue as Any, kCFBooleanTrue as AnyObject, true, NSNumber(value: true), true as NSNumber,
            NSNumber(booleanLiteral: true),
        ]
        for value in values {
            var query: [String: Any] = [kSecClass as String: kSecClassGenericPassword]
            query[kSecReturnData as String] = value
            var result: CFTypeRef?
            #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
            #expect(result as? Data == secret)
        }
        var query: [String: Any] = [kSecClass as String: kSecClassGenericPassword]
        query[kSecReturnData as String] = kCFBooleanTrue
        #expect(SecItemCopyMatching(query as CFDictionary, nil) == errSecSuccess)
    }

    // MARK: Results

    @Test("Results are returned in a CFTypeRef?, an AnyObject?, or through a pointer")
    func results() {
        addItem()
        let query = [kSecClass: kSecClassGenericPassword, kSecReturnData: true] as [CFString: Any]
        var reference: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &reference) == errSecSuccess)
        #expect(reference as? Data == secret)
        var object: AnyObject?
        #expect(SecItemCopyMatching(query as CFDictionary, &object) == errSecSuccess)
        #expect(object as? Data == secret)
        var pointed: AnyObject?
        let status = withUnsafeMutablePointer(to: &pointed) { SecItemCopyMatching(query as CFDictionary, UnsafeMutablePointer($0)) }
        #expect(status == noErr)
        #expect(pointed as? Data == secret)
        #expect(pointed as! Data == secret)
    }

    @Test("A dictionary of attributes: `as? [String: Any]`, `as? [String: AnyObject]`, `as? NSDictionary`")
    func dictionaryResult() throws {
        addItem()
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecReturnAttributes as String: true, kSecReturnData as String: true,
        ]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        let existing = try #require(result as? [String: Any])
        #expect(existing[kSecAttrAccount as String] as? String == "Skroob")
        #expect(existing[kSecValueData as String] as? Data == secret)
        #expect(existing[kSecAttrSynchronizable as String] as? Bool == false)
        #expect(existing[kSecAttrModificationDate as String] is Date)
        #expect((existing[kSecAttrAccessible as String] as? String) == kSecAttrAccessibleWhenUnlocked as String)
        let accessControl = existing[kSecAttrAccessControl as String]
        #expect(CFGetTypeID(accessControl as CFTypeRef) == SecAccessControlGetTypeID())
        #expect((result as? [String: AnyObject])?[kSecAttrAccount as String] as? String == "Skroob")
        #expect((result as? [String: AnyHashable])?[kSecAttrAccount as String] as? String == "Skroob")
        #expect((result as? NSDictionary)?[kSecAttrAccount] as? String == "Skroob")
        #expect((result as? NSDictionary)?.object(forKey: kSecValueData) as? NSData == NSData(data: secret))
    }

    @Test("Many items: `as? [[String: Any]]`, `as? [[String: AnyHashable]]`, `as? [NSDictionary]`, `as? NSArray`, `as? [Data]`")
    func arrayResult() throws {
        for account in ["a", "b", "c"] { addItem(account: account) }
        var query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecMatchLimit as String: kSecMatchLimitAll,
            kSecReturnAttributes as String: true,
        ]
        var result: CFTypeRef?
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        let accounts = ["a", "b", "c"]
        #expect((result as? [[String: Any]])?.compactMap { $0[kSecAttrAccount as String] as? String } == accounts)
        #expect((result as? [[String: AnyHashable]])?.compactMap { $0[kSecAttrAccount as String] as? String } == accounts)
        #expect((result as? [[CFString: Any]])?.compactMap { $0[kSecAttrAccount] as? String } == accounts)
        #expect((result as? [NSDictionary])?.compactMap { $0[kSecAttrAccount] as? String } == accounts)
        #expect((result as? NSArray)?.compactMap { ($0 as? NSDictionary)?[kSecAttrAccount] as? String } == accounts)
        #expect((result as! [[String: Any]]).count == 3)
        for item in try #require(result as? [Any]) { #expect(item is [String: Any]) }

        query[kSecReturnAttributes as String] = false
        query[kSecReturnData as String] = true
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? [Data] == [secret, secret, secret])
    }

    @Test("SecItemAdd returns results")
    func addResult() {
        var result: AnyObject?
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob", kSecValueData as String: secret,
            kSecReturnPersistentRef as String: true,
        ]
        #expect(SecItemAdd(item as CFDictionary, &result) == errSecSuccess)
        let query: [String: Any] = [kSecValuePersistentRef as String: result!, kSecReturnData as String: true]
        #expect(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
        #expect(result as? Data == secret)
    }

    // MARK: Statuses and errors

    @Test("Statuses can be matched as patterns, and have messages")
    func statuses() {
        let status = SecItemCopyMatching([kSecClass: kSecClassGenericPassword] as CFDictionary, nil)
        switch status {
        case errSecSuccess, errSecInteractionNotAllowed: Issue.record("found something in an empty keychain")
        case errSecItemNotFound: break
        default: Issue.record("status \(status)")
        }
        #expect((SecCopyErrorMessageString(status, nil) as String?)?.isEmpty == false)
        let error = NSError(domain: NSOSStatusErrorDomain, code: Int(status), userInfo: nil)
        #expect(error.code == Int(errSecItemNotFound))
    }

    @Test("A status may be ignored, without a warning")
    func ignoredStatus() {
        SecItemAdd([kSecClass: kSecClassGenericPassword] as CFDictionary, nil)
        SecItemUpdate([kSecClass: kSecClassGenericPassword] as CFDictionary, [kSecAttrLabel: "l"] as CFDictionary)
        SecItemCopyMatching([kSecClass: kSecClassGenericPassword] as CFDictionary, nil)
        SecItemDelete([kSecClass: kSecClassGenericPassword] as CFDictionary)
        #expect(SecItemCopyMatching([kSecClass: kSecClassGenericPassword] as CFDictionary, nil) == errSecItemNotFound)
    }

    @Test("SecAccessControlCreateWithFlags returns an unmanaged error")
    func accessControlErrors() {
        var error: Unmanaged<CFError>?
        let refused = SecAccessControlCreateWithFlags(
            kCFAllocatorDefault, kSecAttrAccessibleWhenUnlocked, [.userPresence, .biometryAny], &error)
        #expect(refused == nil)
        let failure = error?.takeRetainedValue()
        #expect(failure.map { CFErrorGetDomain($0) as String } == NSOSStatusErrorDomain)
        #expect(failure.map { CFErrorGetCode($0) } == Int(errSecParam))
        #expect((failure.flatMap { CFErrorCopyUserInfo($0) } as? [String: Any])?.isEmpty == false)
        #expect((failure as Error?) != nil)

        var none: Unmanaged<CFError>?
        guard
            let accessControl = SecAccessControlCreateWithFlags(
                nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as CFTypeRef, .userPresence, &none)
        else {
            Issue.record("\(none!.takeRetainedValue() as Error)")
            return
        }
        #expect(none == nil)
        #expect(accessControl == accessControl)
        #expect(SecAccessControlCreateWithFlags(nil, "bogus" as CFString, [], nil) == nil)
    }

    @Test("An item with constraints that cannot be satisfied is not stored")
    func constraints() {
        let accessControl = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil)!
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob",
            kSecAttrAccessControl as String: accessControl, kSecValueData as String: secret,
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecAuthFailed)
        #expect(SecItemCopyMatching([kSecClass: kSecClassGenericPassword] as CFDictionary, nil) == errSecItemNotFound)
    }

    @Test("Random bytes: into an array, and into Data")
    func randomBytes() {
        var bytes = [UInt8](repeating: 0, count: 32)
        #expect(SecRandomCopyBytes(kSecRandomDefault, bytes.count, &bytes) == errSecSuccess)
        #expect(Set(bytes).count > 1)
        var data = Data(count: 32)
        let status = data.withUnsafeMutableBytes { SecRandomCopyBytes(kSecRandomDefault, 32, $0.baseAddress!) }
        #expect(status == errSecSuccess)
        #expect(data != Data(count: 32))
    }
}
