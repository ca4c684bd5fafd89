// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("Dictionaries of all verbs")
struct ItemDictionaryTests {
    // MARK: Class

    @Test("A dictionary without a class is rejected", arguments: Verb.allCases)
    func noClass(verb: Verb) {
        #expect(verb.status([kSecAttrAccount: "a"]) == errSecParam)
        #expect(verb.status([:]) == errSecParam)
        for value in [1, true, Data("genp".utf8), NSNull(), [kSecClassGenericPassword]] as [Any] {
            #expect(verb.status([kSecClass: value]) == errSecParam)
        }
    }

    @Test("An unknown class is rejected", arguments: Verb.allCases)
    func unknownClass(verb: Verb) {
        for name in ["", "apls", "GENP", "genp ", "class"] { #expect(verb.status([kSecClass: name]) == errSecNoSuchClass) }
    }

    @Test("Certificates, keys and identities are not implemented", arguments: Verb.allCases)
    func unimplementedClasses(verb: Verb) {
        for name in [kSecClassCertificate, kSecClassKey, kSecClassIdentity] {
            #expect(verb.status([kSecClass: name]) == errSecUnimplemented)
        }
    }

    @Test("Both kinds of password are accepted, as any kind of string", arguments: Verb.allCases)
    func passwords(verb: Verb) {
        for name in [kSecClassGenericPassword, kSecClassInternetPassword] {
            for value in [name, NSString(string: name), AnyHashable(name), Substring(name)] as [Any] {
                #expect(verb.status([kSecClass: value]) == errSecSuccess)
            }
        }
    }

    // MARK: Key names

    @Test(
        "A name of four letters that the class does not have is reported as no attribute", arguments: Verb.allCases,
        ["subj", "kcls", "volm", "acls", "spwd", "UUID", "v_Da", "r_Da", "mmmm", "ffff", "ßßßß"])
    func unknownAttribute(verb: Verb, key: String) {
        #expect(verb.status(genericPassword([key: "a"])) == errSecNoSuchAttr)
        #expect(verb.status(internetPassword([key: "a"])) == errSecNoSuchAttr)
    }

    @Test("An attribute of the other class is reported as no attribute", arguments: Verb.allCases)
    func otherClass(verb: Verb) {
        for key in [
            kSecAttrServer, kSecAttrSecurityDomain, kSecAttrProtocol, kSecAttrAuthenticationType, kSecAttrPort, kSecAttrPath, "bini",
        ] {
            #expect(verb.status(genericPassword([key: "1"])) == errSecNoSuchAttr)
        }
        for key in [kSecAttrService, kSecAttrGeneric] { #expect(verb.status(internetPassword([key: "1"])) == errSecNoSuchAttr) }
    }

    @Test(
        "Every other unknown name is rejected", arguments: Verb.allCases,
        [
            "", "a", "m", "f", "persistref", "foo_Bar", "classes", "r_Everything", "u_Everything", "u_CredRef", "v_Everything", "Class",
            "acctx",
        ])
    func unknownName(verb: Verb, key: String) {
        #expect(verb.status(genericPassword([key: "a"])) == errSecParam)
    }

    @Test("A name that begins with f_ is ignored", arguments: Verb.allCases)
    func ignoredName(verb: Verb) {
        #expect(verb.status(genericPassword(["f_Callback": "a"])) == errSecSuccess)
    }

    @Test("The flag for the data protection keychain is ignored, whatever its value", arguments: Verb.allCases)
    func dataProtectionKeychain(verb: Verb) {
        for value in [true, false, 1, "a", NSNull()] as [Any] {
            #expect(verb.status(genericPassword([kSecUseDataProtectionKeychain: value])) == errSecSuccess)
        }
    }

    @Test("Values of authentication keys never make a call fail", arguments: Verb.allCases)
    func use(verb: Verb) {
        for key in [kSecUseOperationPrompt, kSecUseNoAuthenticationUI, kSecUseAuthenticationContext, kSecUseAuthenticationUI] {
            for value in ["a", true, 1, NSNull(), NSObject()] as [Any] {
                #expect(verb.status(genericPassword([key: value])) == errSecSuccess)
            }
        }
        #expect(verb.status(genericPassword([kSecUseAuthenticationUI: kSecUseAuthenticationUIFail])) == errSecSuccess)
        #expect(verb.status(genericPassword([kSecUseAuthenticationUI: kSecUseAuthenticationUIAllow])) == errSecSuccess)
    }

    @Test("Only searches can skip items with access control", arguments: Verb.allCases)
    func skip(verb: Verb) {
        let status = verb.status(genericPassword([kSecUseAuthenticationUI: kSecUseAuthenticationUISkip]))
        #expect(status == (verb == .copyMatching ? errSecSuccess : errSecParam))
    }

    @Test("Attributes reserved for the keychain are errSecParam", arguments: Verb.allCases)
    func internalAttribute(verb: Verb) {
        #expect(verb.status(genericPassword(["clip": 1])) == errSecParam)
        #expect(verb.status(internetPassword(["clip": 0])) == errSecParam)
    }

    @Test("A sharing group requires an entitlement, and cannot be synchronizable", arguments: Verb.allCases)
    func sharingGroup(verb: Verb) {
        #expect(verb.status(genericPassword(["ggrp": "a"])) == errSecMissingEntitlement)
        #expect(verb.status(genericPassword(["ggrp": "a", kSecAttrSynchronizable: true])) == errSecParam)
    }

    @Test("The additional fields of internet passwords require an entitlement", arguments: Verb.allCases)
    func internetExtras(verb: Verb) {
        for key in ["binn", "bini", "bin0", "bin1", "bin2", "bin3"] {
            #expect(verb.status(internetPassword([key: Data()])) == errSecMissingEntitlement)
        }
    }

    @Test("More than 128 keys are rejected", arguments: Verb.allCases)
    func tooManyKeys(verb: Verb) {
        let names = (1001...1127).map { ("f_\($0)", 1 as Any) }
        let most = genericPassword(Dictionary(uniqueKeysWithValues: names))
        #expect(verb.status(most) == errSecSuccess)
        #expect(verb.status(most.merging(["f_1000": 1]) { $1 }) == errSecParam)
    }

    // MARK: Types and values

    @Test(
        "A return key requires a Boolean, not a number", arguments: Verb.allCases,
        [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef])
    func returnFlags(verb: Verb, key: String) {
        for value in [1, 0, NSNumber(value: 1), "1", "true", NSNull(), 1.0] as [Any] {
            #expect(verb.status(genericPassword([key: value])) == errSecParam)
        }
        for value in [false, NSNumber(value: false), kCFBooleanFalse as Any, AnyHashable(false)] as [Any] {
            #expect(verb.status(genericPassword([key: value])) == errSecSuccess)
        }
        for value in [true, NSNumber(value: true), kCFBooleanTrue as Any, AnyHashable(true)] as [Any] {
            #expect(verb.status(genericPassword([key: value])) == (verb == .update ? errSecParam : errSecSuccess))
        }
    }

    @Test("The secret must be data; nothing is converted to data", arguments: Verb.allCases)
    func secret(verb: Verb) {
        for value in ["a", 1, true, NSNull(), [UInt8(1)], Data?.none as Any, Date()] as [Any] {
            #expect(verb.status(genericPassword([kSecValueData: value])) == errSecParam)
        }
        for value in [Data(), Data([1]), NSData(data: Data([1])), AnyHashable(Data([1]))] as [Any] {
            #expect(verb.status(genericPassword([kSecValueData: value])) == errSecSuccess)
        }
    }

    @Test("A reference to an item is rejected: passwords have none", arguments: Verb.allCases)
    func reference(verb: Verb) {
        #expect(verb.status(genericPassword([kSecValueRef: NSObject()])) == errSecParam)
    }

    @Test("The access control must be an access control object", arguments: Verb.allCases)
    func accessControl(verb: Verb) throws {
        for value in ["a", 1, Data(), NSNull(), kSecAttrAccessibleWhenUnlocked] as [Any] {
            #expect(verb.status(genericPassword([kSecAttrAccessControl: value])) == errSecParam)
        }
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        #expect(verb.status(genericPassword([kSecAttrAccessControl: object])) == errSecSuccess)
    }

    @Test("An access control created with flags, even none, excludes an accessibility", arguments: Verb.allCases)
    func twoProtections(verb: Verb) throws {
        for flags in [[], .userPresence] as [SecAccessControlCreateFlags] {
            let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, flags)
            let both: [String: Any] = [kSecAttrAccessControl: object, kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]
            #expect(verb.status(genericPassword(both)) == errSecParam)
        }
    }

    @Test("The access control that a search returns for a plain item may stand next to its accessibility", arguments: Verb.allCases)
    func plainAccessControl(verb: Verb) {
        let both: [String: Any] = [
            kSecAttrAccessControl: SecAccessControl(of: .password()), kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked,
        ]
        #expect(verb.status(genericPassword(both)) == errSecSuccess)
        let constrained = KeychainItem.password(accessControl: AccessControl(.whenUnlocked, constraint: .userPresence))
        let refused: [String: Any] = [
            kSecAttrAccessControl: SecAccessControl(of: constrained), kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked,
        ]
        #expect(verb.status(genericPassword(refused)) == errSecParam)
    }

    @Test("A wrong type or value of any attribute is rejected", arguments: Verb.allCases)
    func badAttributes(verb: Verb) {
        let bad: [String: Any] = [
            kSecAttrAccount: true, kSecAttrService: Date(), kSecAttrAccessGroup: 1, kSecAttrAccessible: "never",
            kSecAttrSynchronizable: "sometimes", kSecAttrCreationDate: "today", kSecAttrType: Data(), kSecAttrLabel: NSNull(),
            kSecAttrIsInvisible: Date(), kSecAttrComment: ["a"], "sha1": Data(), "musr": "a", "tomb": "a", kSecAttrCreator: Double.nan,
        ]
        for (key, value) in bad { #expect(verb.status(genericPassword([key: value])) == errSecParam, "\(key)") }
        #expect(verb.status(internetPassword([kSecAttrPort: UInt64.max])) == errSecParam)
    }

    // MARK: Order

    @Test("Of several mistakes, the class is reported first, then names, then types, then values", arguments: Verb.allCases)
    func order(verb: Verb) {
        let badName: [String: Any] = ["subj": 1]
        let badType: [String: Any] = [kSecAttrAccount: true]
        #expect(verb.status(badName.merging([kSecClass: "none"]) { $1 }) == errSecNoSuchClass)
        for _ in 0..<20 {
            // Each round creates dictionaries with another order of iteration.
            #expect(verb.status(genericPassword(badName.merging(badType) { $1 })) == errSecNoSuchAttr)
            #expect(verb.status(genericPassword(["subj": 1, "xxxxx": 1])) == errSecNoSuchAttr)
            #expect(verb.status(genericPassword(["zzzz": 1, "xxxxx": 1])) == errSecParam)
        }
    }

    // The subject is the text: it is for people, and may not reveal a value.
    @Test("The error message contains the key and not the value")
    func failureText() throws {
        let failure = try #require(throws: KeychainFailure.self) {
            try ParsedItemDictionary(genericPassword([kSecAttrAccount: ["hunter2"]]))
        }
        #expect(failure.reason.contains("\"acct\"") && !failure.reason.contains("hunter2"))
        let long = try #require(throws: KeychainFailure.self) {
            try ParsedItemDictionary(genericPassword([String(repeating: "x\n", count: 1000): 1]))
        }
        #expect(long.reason.utf8.count < 200)
        #expect(!long.reason.contains("\n"))
    }

    @Test("A key of a Foundation dictionary that is not a string is rejected")
    func otherKeys() {
        let dictionary = NSDictionary(dictionary: [kSecClass: kSecClassGenericPassword, 1: "a"] as [AnyHashable: Any])
        let good = NSDictionary(dictionary: [kSecClass: kSecClassGenericPassword])
        CurrentKeychain.with(RecordingKeychain()) {
            for bad in [dictionary, NSDictionary(dictionary: [NSNull(): 1])] {
                #expect(SecItemAdd(bad, nil) == errSecParam)
                #expect(SecItemCopyMatching(bad, nil) == errSecParam)
                #expect(SecItemDelete(bad) == errSecParam)
                #expect(SecItemUpdate(bad, good) == errSecParam)
                #expect(SecItemUpdate(good, bad) == errSecParam)
                #expect(SecItemUpdate(bad, [:] as CFDictionary) == errSecParam)
                #expect(SecItemUpdate(genericPassword(), bad) == errSecParam)
            }
            #expect(SecItemAdd(good, nil) == errSecSuccess)
            #expect(SecItemCopyMatching(good, nil) == errSecSuccess)
            #expect(SecItemDelete(good) == errSecSuccess)
            #expect(SecItemUpdate(good, NSMutableDictionary()) == errSecSuccess)
        }
    }

    @Test("An instance of a subclass of NSDictionary is accepted")
    func derivedDictionary() {
        let status = CurrentKeychain.with(RecordingKeychain()) {
            SecItemDelete(DerivedDictionary(NSDictionary(dictionary: genericPassword())))
        }
        #expect(status == errSecSuccess)
    }
}

/// A dictionary whose superclass storage is empty.
private final class DerivedDictionary: NSDictionary {
    private let storage: NSDictionary

    init(_ storage: NSDictionary) {
        self.storage = storage
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, forKeys: nil as UnsafePointer<NSObject>?, count: 0)
    }

    required init(objects: UnsafePointer<AnyObject>?, forKeys keys: UnsafePointer<NSObject>?, count: Int) {
        storage = NSDictionary()
        unsafe super.init(objects: nil as UnsafePointer<AnyObject>?, forKeys: nil as UnsafePointer<NSObject>?, count: 0)
    }

    required convenience init(dictionaryLiteral elements: (Any, Any)...) {
        self.init(NSDictionary())
    }

    required convenience init?(coder: NSCoder) {
        nil
    }

    override var count: Int { storage.count }

    override func object(forKey key: Any) -> Any? { storage.object(forKey: key) }

    override func keyEnumerator() -> NSEnumerator { storage.keyEnumerator() }
}
