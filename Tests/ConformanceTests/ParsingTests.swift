// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import ServedKeychain
import Testing

/// One key with a value that no call accepts.
private struct Fault: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let key: CFString
    let value: any Sendable
    let status: OSStatus

    init(_ description: String, _ key: CFString, _ value: any Sendable, _ status: OSStatus = errSecParam) {
        testDescription = description
        self.key = key
        self.value = value
        self.status = status
    }
}

/// One key that every call accepts, with a value that changes nothing.
private struct Harmless: CustomTestStringConvertible, Sendable {
    let key: CFString
    let value: any Sendable

    var testDescription: String { "\(key): \(value)" }
}

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 2: how a dictionary is read", .keychain)
struct ParsingTests {
    private static let classFaults = [
        Fault("a number as class", kSecClass, 1),
        Fault("data as class", kSecClass, Data("genp".utf8)),
        Fault("nothing as class", kSecClass, NSNull()),
        Fault("an unknown class", kSecClass, "bogus", errSecNoSuchClass),
        Fault("an empty class", kSecClass, "", errSecNoSuchClass),
        Fault("AppleShare passwords", kSecClass, "apls", errSecNoSuchClass),
    ]

    private static let nameFaults = [
        Fault("four letters that are no attribute", "abcd" as CFString, "x", errSecNoSuchAttr),
        Fault("four letters that begin like the class", "clas" as CFString, "x", errSecNoSuchAttr),
        Fault("four letters that begin like a match key", "m_xx" as CFString, "x", errSecNoSuchAttr),
        Fault("a volume", "volm" as CFString, "x", errSecNoSuchAttr),
        Fault("an attribute of another class", kSecAttrServer, "example.com", errSecNoSuchAttr),
        Fault("an attribute of keys", kSecAttrKeyClass, kSecAttrKeyClassPublic as String, errSecNoSuchAttr),
        Fault("the access list of the old macOS keychain", kSecAttrAccess, "x", errSecNoSuchAttr),
        Fault("a longer name in c", "classes" as CFString, "x"),
        Fault("an unknown return key", "r_Unknown" as CFString, true),
        Fault("an unknown use key", "u_Unknown" as CFString, true),
        Fault("an unknown value key", "v_Unknown" as CFString, Data()),
        Fault("a key of one letter", "x" as CFString, "x"),
        Fault("an empty key", "" as CFString, "x"),
        Fault("any other name", "x_Bar" as CFString, "x"),
        Fault("the column of persistent references", kSecAttrPersistentReference, Data(repeating: 0, count: 16)),
        Fault("the keychain's own attribute", PrivateKey.appClipItem, 1),
        Fault("a list of items to use", kSecUseItemList, [String]()),
        Fault("a reference as value", kSecValueRef, "x"),
        Fault("a sharing group without its entitlement", PrivateKey.sharingGroup, "group", errSecMissingEntitlement),
    ]

    private static let valueFaults = [
        Fault("a number that stands for true", kSecReturnData, 1),
        Fault("a number that stands for false", kSecReturnAttributes, 0),
        Fault("text that says true", kSecReturnPersistentRef, "true"),
        Fault("nothing as return flag", kSecReturnRef, NSNull()),
        Fault("a secret as text", kSecValueData, "secret"),
        Fault("a secret as number", kSecValueData, 1),
        Fault("a secret as Boolean", kSecValueData, true),
        Fault("a secret as nothing", kSecValueData, NSNull()),
        Fault("a secret as date", kSecValueData, Date.now),
        Fault("a secret as array of bytes", kSecValueData, [1, 2, 3] as [UInt8]),
        Fault("a secret that is a nil in an Any", kSecValueData, Data?.none),
        Fault("an account that is a nil in an Any", kSecAttrAccount, String?.none),
        Fault("an empty reference", kSecValuePersistentRef, Data()),
        Fault("a reference that is too short", kSecValuePersistentRef, Data("genp".utf8) + Data(repeating: 0, count: 15)),
        Fault("a reference that is too long", kSecValuePersistentRef, Data("genp".utf8) + Data(repeating: 0, count: 17)),
        Fault("a reference as text", kSecValuePersistentRef, "genp0123456789abcdef"),
        Fault("a reference of no class", kSecValuePersistentRef, Data("none".utf8) + Data(repeating: 0, count: 16)),
        Fault("an access control as text", kSecAttrAccessControl, "ak"),
        Fault("an access control as data", kSecAttrAccessControl, Data()),
        Fault("an access control as nothing", kSecAttrAccessControl, NSNull()),
        Fault("an unknown accessibility", kSecAttrAccessible, "bogus"),
        Fault("synchronizable as data", kSecAttrSynchronizable, Data()),
        Fault("synchronizable as date", kSecAttrSynchronizable, Date.now),
        Fault("synchronizable as a word", kSecAttrSynchronizable, "yes"),
        Fault("a tombstone as data", PrivateKey.tombstone, Data()),
        Fault("whether to leave tombstones as a word", PrivateKey.useTombstones, "yes"),
        Fault("a credential reference as text", PrivateKey.credentialReference, "x"),
    ]

    private func prepare(for verb: Verb) {
        if verb != .add { add(Item.generic()) }
    }

    @Test("A dictionary without a class is rejected", arguments: Verb.allCases)
    func noClass(verb: Verb) {
        prepare(for: verb)
        #expect(verb.status(Item.generic().without(kSecClass)) == errSecParam)
        #expect(verb.status([:]) == errSecParam)
    }

    @Test("A class must have a known name", arguments: Verb.allCases, classFaults)
    private func badClass(verb: Verb, fault: Fault) {
        prepare(for: verb)
        #expect(verb.status(Item.generic().with(fault.key, fault.value)) == fault.status)
    }

    @Test("An unknown key is rejected", arguments: Verb.allCases, nameFaults)
    private func badName(verb: Verb, fault: Fault) {
        prepare(for: verb)
        #expect(verb.status(Item.generic().with(fault.key, fault.value)) == fault.status)
    }

    @Test("A value must be of its key's type", arguments: Verb.allCases, valueFaults)
    private func badValue(verb: Verb, fault: Fault) {
        prepare(for: verb)
        #expect(verb.status(Item.generic().with(fault.key, fault.value)) == fault.status)
    }

    @Test("A class and a persistent reference of another class contradict each other", arguments: Verb.allCases)
    func classAndReference(verb: Verb) {
        prepare(for: verb)
        let reference = Data("inet".utf8) + Data(repeating: 0, count: 16)
        let dictionary: ItemDictionary = [kSecClass: kSecClassGenericPassword, kSecValuePersistentRef: reference]
        #expect(verb.status(dictionary) == errSecNoSuchClass)
    }

    @Test("A sharing group cannot be synchronizable", arguments: Verb.allCases)
    func sharingGroupAndSynchronizable(verb: Verb) {
        prepare(for: verb)
        let dictionary = Item.generic().with([PrivateKey.sharingGroup: "group", kSecAttrSynchronizable: true])
        #expect(verb.status(dictionary) == errSecParam)
    }

    @Test("The further secrets of an internet password need an entitlement")
    func additionalSecrets() {
        #expect(add(Item.internet().with(PrivateKey.internetNotes, Data())).status == errSecMissingEntitlement)
        #expect(add(Item.generic().with(PrivateKey.internetNotes, Data())).status == errSecNoSuchAttr)
    }

    @Test(
        "Keys about prompts, and obsolete keys, have no effect, whatever their value", arguments: Verb.allCases,
        [
            Harmless(key: kSecUseDataProtectionKeychain, value: true),
            Harmless(key: kSecUseDataProtectionKeychain, value: "odd"),
            Harmless(key: kSecUseOperationPrompt, value: "Please"),
            Harmless(key: kSecUseOperationPrompt, value: 5),
            Harmless(key: kSecUseNoAuthenticationUI, value: true),
            Harmless(key: kSecUseNoAuthenticationUI, value: "odd"),
            Harmless(key: kSecUseAuthenticationUI, value: kSecUseAuthenticationUIAllow as String),
            Harmless(key: kSecUseAuthenticationUI, value: kSecUseAuthenticationUIFail as String),
            Harmless(key: kSecUseAuthenticationUI, value: "odd"),
            Harmless(key: kSecUseAuthenticationUI, value: 5),
            Harmless(key: PrivateKey.callerName, value: "name"),
            Harmless(key: PrivateKey.tokenRawItems, value: true),
            Harmless(key: "f_Callback" as CFString, value: "x"),
            Harmless(key: kSecReturnData, value: false),
            Harmless(key: kSecReturnAttributes, value: NSNumber(value: false)),
        ])
    private func harmless(verb: Verb, key: Harmless) {
        prepare(for: verb)
        #expect(verb.status(Item.generic().with(key.key, key.value)) == errSecSuccess)
    }

    @Test(
        "Match keys are accepted only in searches, which ignore unknown ones",
        arguments: [kSecMatchItemList, kSecMatchSearchList, kSecMatchCaseInsensitive, kSecMatchSubjectContains, "m_Unknown" as CFString])
    func matchKeys(key: CFString) {
        let item = Item.generic().with(key, "value")
        #expect(add(item).status == errSecParam)
        add(Item.generic())
        #expect(find(item).status == errSecSuccess)
        #expect(update(item, [kSecAttrLabel: "label"]) == errSecParam)
        #expect(delete(item) == errSecParam)
    }

    @Test("A dictionary may have a hundred unneeded keys, but not two hundred")
    func tooManyKeys() {
        add(Item.generic())
        func query(_ keyCount: Int) -> ItemDictionary {
            (0..<keyCount).reduce(into: Item.genericQuery()) { $0["m_Unknown\($1)" as CFString] = true }
        }
        #expect(find(query(50)).status == errSecSuccess)
        #expect(find(query(200)).status == errSecParam)
    }

    @Test("Of several mistakes, the class is reported before a key's name, and a name before a value", arguments: Verb.allCases)
    func orderOfMistakes(verb: Verb) {
        prepare(for: verb)
        let badName = Item.generic().with("abcd" as CFString, "x")
        #expect(verb.status(badName.with(kSecClass, "bogus")) == errSecNoSuchClass)
        #expect(verb.status(badName.with(kSecValueData, "text")) == errSecNoSuchAttr)
    }

    @Test("A true Boolean object requests a result in each of its spellings")
    func returnFlags() {
        add(Item.generic())
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).data == Item.secret)
        #expect(find(Item.genericQuery().with(kSecReturnData, NSNumber(value: true))).data == Item.secret)
        #expect(find(Item.genericQuery().with(kSecReturnData, kCFBooleanTrue as Any)).data == Item.secret)
        #expect(find(Item.genericQuery().with(kSecReturnData, AnyHashable(true))).data == Item.secret)
    }
}

#if !canImport(Darwin)
/// Apple's platforms bridge such dictionaries; here each function accepts an NSDictionary.
@Suite("Section 2: a Foundation dictionary", .keychain)
struct FoundationDictionaryTests {
    private let item: NSDictionary = Item.generic() as NSDictionary

    @Test("Every call takes a Foundation dictionary")
    func calls() {
        #expect(SecItemAdd(item, nil) == errSecSuccess)
        #expect(SecItemCopyMatching(item, nil) == errSecSuccess)
        #expect(SecItemUpdate(item, [kSecAttrLabel: "label"] as NSDictionary) == errSecSuccess)
        #expect(SecItemDelete(item) == errSecSuccess)
    }

    @Test("A key that is not a string is rejected")
    func keyThatIsNoString() {
        let dictionary = NSMutableDictionary(dictionary: Item.generic())
        dictionary[NSNumber(value: 1)] = "value"
        #expect(SecItemAdd(dictionary, nil) == errSecParam)
        #expect(SecItemCopyMatching(dictionary, nil) == errSecParam)
        #expect(SecItemUpdate(dictionary, [kSecAttrLabel: "label"] as NSDictionary) == errSecParam)
        #expect(SecItemUpdate(item, dictionary) == errSecParam)
        #expect(SecItemDelete(dictionary) == errSecParam)
    }
}
#endif
