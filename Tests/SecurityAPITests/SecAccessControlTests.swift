// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("SecAccessControlCreateWithFlags")
struct SecAccessControlTests {
    @Test(
        "The flags have the same bits as on Apple platforms",
        arguments: zip(
            [
                .userPresence, .biometryAny, .touchIDAny, .biometryCurrentSet, .touchIDCurrentSet, .devicePasscode, .watch, .companion, .or,
                .and, .privateKeyUsage, .applicationPassword,
            ] as [SecAccessControlCreateFlags],
            [0x1, 0x2, 0x2, 0x8, 0x8, 0x10, 0x20, 0x20, 0x4000, 0x8000, 0x4000_0000, 0x8000_0000] as [CFOptionFlags]))
    func bits(flag: SecAccessControlCreateFlags, bits: CFOptionFlags) {
        #expect(flag.rawValue == bits)
    }

    @Test("Every accessibility value is accepted as a protection", arguments: ItemAccessibility.allCases)
    func protections(accessibility: ItemAccessibility) throws {
        let object = try makeAccessControl(accessibility.rawValue, [])
        #expect(object.accessControl == AccessControl(accessibility))
    }

    @Test("Every other string is rejected as a protection", arguments: ["", "f", "AK", "ak ", "kSecAttrAccessibleWhenUnlocked"])
    func badProtection(protection: String) {
        #expect(status { _ = try makeAccessControl(protection, []) } == errSecParam)
    }

    @Test(
        "Contradictory combinations of flags are rejected",
        arguments: [
            [.or, .and], [.biometryAny, .biometryCurrentSet], [.biometryAny, .biometryCurrentSet, .or], [.userPresence, .biometryAny],
            [.userPresence, .biometryCurrentSet], [.userPresence, .devicePasscode], [.userPresence, .companion], [.userPresence, .or],
            [.userPresence, .and], [.userPresence, .applicationPassword, .or],
            [.userPresence, SecAccessControlCreateFlags(rawValue: 1 << 2)], [.or, .and, .devicePasscode, .companion],
        ] as [SecAccessControlCreateFlags])
    func refused(flags: SecAccessControlCreateFlags) {
        #expect(status { _ = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, flags) } == errSecParam)
    }

    @Test(
        "Other combinations of flags are accepted, with these constraints",
        arguments: [
            ([], nil),
            (.userPresence, .userPresence),
            (.biometryAny, .biometryAny),
            (.biometryCurrentSet, .biometryCurrentSet),
            (.devicePasscode, .devicePasscode),
            (.companion, .companion),
            (.or, nil),
            (.and, nil),
            ([.or, .devicePasscode], .devicePasscode),
            ([.and, .devicePasscode], .devicePasscode),
            ([.or, .devicePasscode, .biometryAny], .any([.biometryAny, .devicePasscode])),
            ([.and, .devicePasscode, .biometryAny], .all([.biometryAny, .devicePasscode])),
            ([.devicePasscode, .biometryAny], .all([.biometryAny, .devicePasscode])),
            ([.devicePasscode, .biometryCurrentSet, .companion, .or], .any([.biometryCurrentSet, .devicePasscode, .companion])),
            (.applicationPassword, .applicationPassword),
            ([.applicationPassword, .or], .applicationPassword),
            ([.applicationPassword, .userPresence], .all([.userPresence, .applicationPassword])),
            ([.applicationPassword, .devicePasscode, .biometryAny], .all([.biometryAny, .devicePasscode, .applicationPassword])),
            (
                [.applicationPassword, .devicePasscode, .biometryAny, .or],
                .all([.any([.biometryAny, .devicePasscode]), .applicationPassword])
            ),
            (SecAccessControlCreateFlags(rawValue: 1 << 2 | 1 << 20), nil),
            ([.devicePasscode, SecAccessControlCreateFlags(rawValue: 1 << 2)], .devicePasscode),
        ] as [(SecAccessControlCreateFlags, AccessControl.Constraint?)])
    func granted(flags: SecAccessControlCreateFlags, constraint: AccessControl.Constraint?) throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, flags)
        #expect(object.accessControl == AccessControl(.whenUnlocked, constraint: constraint))
    }

    @Test(
        "privateKeyUsage can be combined with every constraint",
        arguments: [[], .userPresence, .biometryAny] as [SecAccessControlCreateFlags])
    func privateKeyUsage(flags: SecAccessControlCreateFlags) throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, flags.union(.privateKeyUsage))
        #expect(object.accessControl.allowsPrivateKeyUsageOnly)
        #expect(!object.accessControl.isUnconstrained)
    }

    @Test("The protection may be any object that is a string")
    func protectionObject() throws {
        let object = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked as CFTypeRef, [], nil)
        #expect(try object == makeAccessControl(kSecAttrAccessibleWhenUnlocked, []))
        #expect(SecAccessControlCreateWithFlags(nil, NSNumber(value: 1), [], nil) == nil)
        #expect(SecAccessControlCreateWithFlags(nil, NSNull(), [], nil) == nil)
    }

    @Test("Objects are equal if their protection and flags are equal")
    func equality() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [.devicePasscode, .biometryAny])
        let same = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [.devicePasscode, .biometryAny, .and])
        let other = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [.devicePasscode, .biometryAny, .or])
        #expect(object == same)
        #expect(object.hash == same.hash)
        #expect(object != other)
        #expect(try object != makeAccessControl(kSecAttrAccessibleAfterFirstUnlock, [.devicePasscode, .biometryAny]))
        #expect([AnyHashable("key"): AnyHashable(object)] == [AnyHashable("key"): AnyHashable(same)])
        #expect(NSDictionary(dictionary: ["key": object]).isEqual(NSDictionary(dictionary: ["key": same])))
        #expect(CFEqual(object, same))
        #expect(!CFEqual(object, other))
        #expect(CFHash(object) == CFHash(same))
    }

    @Test("The description contains the protection and the constraints of each operation")
    func description() throws {
        let plain = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [])
        #expect(plain.debugDescription == "<SecAccessControlRef: ak;decrypt(true);encrypt(true);delete(true)>")
        let constrained = try makeAccessControl(kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, [.devicePasscode, .biometryAny, .or])
        #expect(
            "\(constrained)"
                == "<SecAccessControlRef: akpu;decrypt(any(biometryAny,devicePasscode));encrypt(true);delete(true)>")
        let key = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [.privateKeyUsage, .applicationPassword])
        #expect("\(key)" == "<SecAccessControlRef: ak;sign(applicationPassword);encrypt(true);delete(true)>")
    }

    @Test("The type has a distinct type identifier")
    func typeID() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [])
        #expect(CFGetTypeID(object) == SecAccessControlGetTypeID())
        #expect(CFGetTypeID("a" as CFTypeRef) != SecAccessControlGetTypeID())
    }
}
