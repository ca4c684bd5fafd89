// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import ServedKeychain
import Testing

private typealias Flags = SecAccessControlCreateFlags

/// Flags, and whether an object can be made with them.
private struct Combination: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let flags: SecAccessControlCreateFlags

    init(_ description: String, _ flags: SecAccessControlCreateFlags) {
        testDescription = description
        self.flags = flags
    }
}

// Cases and sections: SecItem-behavior.md in KeychainServices.docc.
@Suite("Section 9.1: creating access control objects")
struct AccessControlCreationTests {
    private static let protections = [
        kSecAttrAccessibleWhenUnlocked, kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessibleAlways,
        kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly,
    ]

    private static let combinations = [
        Combination("no flags", []), Combination("userPresence", .userPresence), Combination("biometryAny", .biometryAny),
        Combination("biometryCurrentSet", .biometryCurrentSet), Combination("devicePasscode", .devicePasscode),
        Combination("companion", .companion), Combination("applicationPassword", .applicationPassword),
        Combination("privateKeyUsage", .privateKeyUsage),
        Combination("userPresence and applicationPassword", [.userPresence, .applicationPassword]),
        Combination("userPresence and privateKeyUsage", [.userPresence, .privateKeyUsage]),
        Combination("userPresence with both", [.userPresence, .privateKeyUsage, .applicationPassword]),
        Combination("biometry or passcode", [.biometryAny, .or, .devicePasscode]),
        Combination("biometry and passcode", [.biometryCurrentSet, .and, .devicePasscode]),
        Combination("biometry, passcode", [.biometryAny, .devicePasscode]),
        Combination("three with or", [.biometryAny, .devicePasscode, .companion, .or]),
        Combination("or with nothing", .or), Combination("and with nothing", .and), Combination("or with one", [.or, .devicePasscode]),
        Combination("and with one", [.and, .companion]), Combination("passcode and password", [.devicePasscode, .applicationPassword]),
        Combination("bits without meaning", Flags(rawValue: 1 << 2 | 1 << 9)),
        Combination("bits without meaning beside biometry", [.biometryAny, Flags(rawValue: 1 << 9)]),
    ]

    private static let contradictions = [
        Combination("or and and", [.or, .and]), Combination("or and and with constraints", [.or, .and, .biometryAny, .devicePasscode]),
        Combination("two kinds of biometry", [.biometryAny, .biometryCurrentSet]),
        Combination("two kinds of biometry with or", [.biometryAny, .biometryCurrentSet, .or]),
        Combination("userPresence and biometryAny", [.userPresence, .biometryAny]),
        Combination("userPresence and biometryCurrentSet", [.userPresence, .biometryCurrentSet]),
        Combination("userPresence and devicePasscode", [.userPresence, .devicePasscode]),
        Combination("userPresence and companion", [.userPresence, .companion]),
        Combination("userPresence and or", [.userPresence, .or]), Combination("userPresence and and", [.userPresence, .and]),
        Combination("userPresence and bits without meaning", [.userPresence, Flags(rawValue: 1 << 9)]),
    ]

    private func make(_ protection: CFString, _ flags: SecAccessControlCreateFlags) -> (object: SecAccessControl?, error: CFError?) {
        var error: Unmanaged<CFError>?
        let object = unsafe SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, flags, &error)
        return (object, unsafe error?.takeRetainedValue())
    }

    @Test("Case 68: these combinations can be created with every protection", arguments: protections, combinations)
    private func possible(protection: CFString, combination: Combination) {
        let (object, error) = make(protection, combination.flags)
        #expect(object != nil)
        #expect(error == nil)
    }

    @Test("Case 68: contradictory combinations throw errSecParam", arguments: contradictions)
    private func impossible(combination: Combination) throws {
        let (object, error) = make(kSecAttrAccessibleWhenUnlocked, combination.flags)
        #expect(object == nil)
        let reason = try #require(error)
        #expect(CFErrorGetDomain(reason) as String == NSOSStatusErrorDomain)
        #expect(CFErrorGetCode(reason) == Int(errSecParam))
    }

    @Test("Case 68: a protection must be one of Apple's", arguments: ["", "bogus", "AK"])
    func badProtection(name: String) {
        let (object, error) = make(name as CFString, [])
        #expect(object == nil)
        #expect(error.map { CFErrorGetCode($0) } == Int(errSecParam))
    }

    @Test("The error pointer may be nil")
    func noErrorPointer() {
        #expect(SecAccessControlCreateWithFlags(kCFAllocatorDefault, "bogus" as CFString, [], nil) == nil)
    }

    @Test("Two objects are equal if their protection and flags are equal")
    func equality() {
        func object(_ protection: CFString, _ flags: SecAccessControlCreateFlags) -> SecAccessControl? { make(protection, flags).object }
        #expect(CFEqual(object(kSecAttrAccessibleAlways, .userPresence), object(kSecAttrAccessibleAlways, .userPresence)))
        #expect(!CFEqual(object(kSecAttrAccessibleAlways, .userPresence), object(kSecAttrAccessibleAlways, .devicePasscode)))
        #expect(!CFEqual(object(kSecAttrAccessibleAlways, []), object(kSecAttrAccessibleWhenUnlocked, [])))
    }
}

@Suite("Access control, cases of the specification", .keychain)
struct AccessControlCases {
    @Test("Case 69: an item whose access control has no constraints is read without a prompt")
    func withoutConstraints() throws {
        let control = try accessControl(kSecAttrAccessibleAfterFirstUnlock, [])
        #expect(add(Item.generic().with(kSecAttrAccessControl, control)).status == errSecSuccess)
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        let found = try #require(attributes(of: Item.genericQuery()))
        #expect(found[kSecAttrAccessible] as? String == kSecAttrAccessibleAfterFirstUnlock as String)
    }

    #if !canImport(Darwin)
    @Test("Case 69: such an item is locked and unlocked with its class")
    func lockedWithoutConstraints() throws {
        let keychain = try #require(InMemoryKeychain.current)
        #expect(
            add(Item.generic().with(kSecAttrAccessControl, try accessControl(kSecAttrAccessibleWhenUnlocked, []))).status == errSecSuccess)
        try keychain.lock()
        #expect(find(Item.genericQuery().with(kSecReturnData, true)).status == errSecInteractionNotAllowed)
        try keychain.unlock()
        #expect(secret(of: Item.genericQuery()) == Item.secret)
        #expect(keychain.person.questions.isEmpty)
    }
    #endif

    @Test("Case 72: items may be skipped in searches only", arguments: [Verb.add, .update, .delete])
    func skip(verb: Verb) {
        if verb != .add { add(Item.generic()) }
        let dictionary = Item.generic().with(kSecUseAuthenticationUI, kSecUseAuthenticationUISkip)
        #expect(verb.status(dictionary) == errSecParam)
        #expect(find(Item.genericQuery().with(kSecUseAuthenticationUI, kSecUseAuthenticationUISkip)).status != errSecParam)
    }

    @Test("Case 73: an item with access control cannot be synchronizable, and is not stored", arguments: [true, false])
    func synchronizable(hasConstraints: Bool) throws {
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, hasConstraints ? .userPresence : [])
        let item = Item.generic().with([kSecAttrAccessControl: control, kSecAttrSynchronizable: true])
        #expect(add(item).status == errSecParam)
        #expect(count(of: Item.genericQuery().with(kSecAttrSynchronizable, kSecAttrSynchronizableAny)) == 0)
    }

    @Test("Case 84: an accessibility and an access control exclude each other, even one without constraints", arguments: [true, false])
    func accessibilityAndAccessControl(hasConstraints: Bool) throws {
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, hasConstraints ? .userPresence : [])
        let both: ItemDictionary = [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrAccessControl: control]
        #expect(add(Item.generic().with(both)).status == errSecParam)
        add(Item.generic())
        #expect(update(Item.genericQuery(), both) == errSecParam)
    }

    @Test("Case 88: a query with both an accessibility and an access control is rejected; with one of them it is accepted")
    func accessibilityAndAccessControlInQuery() throws {
        add(Item.generic())
        let control = try accessControl(kSecAttrAccessibleWhenUnlocked, .userPresence)
        let query = Item.genericQuery().with([
            kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked, kSecAttrAccessControl: control,
        ])
        #expect(find(query).status == errSecParam)
        #expect(find(query.without(kSecAttrAccessible)).status == errSecSuccess)
        #expect(find(query.without(kSecAttrAccessControl)).status == errSecSuccess)
    }
}
