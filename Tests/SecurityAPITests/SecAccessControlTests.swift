// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainCore
import Testing

@testable import SecurityAPI

@Suite("SecAccessControlCreateWithFlags")
struct SecAccessControlTests {
    @Test(
        "The flags have Apple's bits",
        arguments: zip(
            [
                .userPresence, .biometryAny, .touchIDAny, .biometryCurrentSet, .touchIDCurrentSet, .devicePasscode, .watch, .companion, .or,
                .and, .privateKeyUsage, .applicationPassword,
            ] as [SecAccessControlCreateFlags],
            [0x1, 0x2, 0x2, 0x8, 0x8, 0x10, 0x20, 0x20, 0x4000, 0x8000, 0x4000_0000, 0x8000_0000] as [CFOptionFlags]))
    func bits(flag: SecAccessControlCreateFlags, bits: CFOptionFlags) {
        #expect(flag.rawValue == bits)
    }

    @Test("Every accessibility value is a protection", arguments: Accessibility.allCases)
    func protections(accessibility: Accessibility) throws {
        let object = try makeAccessControl(accessibility.rawValue, [])
        #expect(object.accessControl == AccessControl(accessibility))
    }

    @Test("Another string is no protection", arguments: ["", "f", "AK", "ak ", "kSecAttrAccessibleWhenUnlocked"])
    func badProtection(protection: String) {
        #expect(status { _ = try makeAccessControl(protection, []) } == errSecParam)
    }

    @Test(
        "These combinations are refused",
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
        "These combinations are granted, and mean this",
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

    @Test("privateKeyUsage goes with every constraint", arguments: [[], .userPresence, .biometryAny] as [SecAccessControlCreateFlags])
    func privateKeyUsage(flags: SecAccessControlCreateFlags) throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, flags.union(.privateKeyUsage))
        #expect(object.accessControl.allowsPrivateKeyUsageOnly)
        #expect(!object.accessControl.isUnconstrained)
    }

    @Test("The protection may be an object, but only a string")
    func protectionObject() throws {
        let object = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked as CFTypeRef, [], nil)
        #expect(try object == makeAccessControl(kSecAttrAccessibleWhenUnlocked, []))
        #expect(SecAccessControlCreateWithFlags(nil, NSNumber(value: 1), [], nil) == nil)
        #expect(SecAccessControlCreateWithFlags(nil, NSNull(), [], nil) == nil)
    }

    @Test("Objects are equal by what they say")
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

    @Test("It describes itself by its protection and what each operation needs")
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

    @Test("Its type has a number of its own")
    func typeID() throws {
        let object = try makeAccessControl(kSecAttrAccessibleWhenUnlocked, [])
        #expect(CFGetTypeID(object) == SecAccessControlGetTypeID())
        #expect(CFGetTypeID("a" as CFTypeRef) != SecAccessControlGetTypeID())
    }
}
