// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import SecurityAPI

@Suite("Core Foundation's names")
struct CoreFoundationTests {
    @Test("Each type has a number of its own")
    func typeIDs() {
        let types: [(CFTypeRef, CFTypeID)] = [
            ("a" as CFTypeRef, CFStringGetTypeID()), (Data() as CFTypeRef, CFDataGetTypeID()), (1 as CFTypeRef, CFNumberGetTypeID()),
            (true as CFTypeRef, CFBooleanGetTypeID()), ([1: 2] as CFTypeRef, CFDictionaryGetTypeID()),
            ([1] as CFTypeRef, CFArrayGetTypeID()), (Date() as CFTypeRef, CFDateGetTypeID()),
            (NSError(domain: "", code: 1), CFErrorGetTypeID()),
        ]
        for (object, type) in types { #expect(CFGetTypeID(object) == type) }
        #expect(Set(types.map(\.1)).union([SecAccessControlGetTypeID(), 0]).count == types.count + 2)
        #expect(CFGetTypeID(nil) == 0)
        #expect(CFGetTypeID(NSNull()) == 0)
    }

    @Test("Booleans are objects with a value")
    func booleans() {
        #expect(kCFBooleanTrue == true)
        #expect(kCFBooleanFalse == false)
        #expect(CFBooleanGetValue(kCFBooleanTrue))
        #expect(!CFBooleanGetValue(kCFBooleanFalse))
        #expect(!CFBooleanGetValue(nil))
        #expect(NSNumber(value: true) === kCFBooleanTrue)
    }

    @Test("Objects are equal by content")
    func equality() {
        #expect(CFEqual("a" as CFTypeRef, NSString(string: "a")))
        #expect(!CFEqual("a" as CFTypeRef, "b" as CFTypeRef))
        #expect(CFEqual(nil, nil))
        #expect(!CFEqual("a" as CFTypeRef, nil))
        #expect(CFHash("a" as CFTypeRef) == CFHash(NSString(string: "a")))
        #expect(CFHash(nil) == 0)
    }

    @Test("An error tells its domain, code, information and description")
    func errors() {
        let error = NSError(domain: NSOSStatusErrorDomain, code: -50, userInfo: [NSLocalizedDescriptionKey: "no"])
        #expect(CFErrorGetDomain(error) == kCFErrorDomainOSStatus)
        #expect(CFErrorGetCode(error) == -50)
        #expect(CFErrorCopyUserInfo(error)?[NSLocalizedDescriptionKey] as? String == "no")
        #expect(CFErrorCopyDescription(error) == "no")
        #expect(CFErrorGetDomain(nil) == "")
        #expect(CFErrorGetCode(nil) == 0)
        #expect(CFErrorCopyUserInfo(nil)?.count == 0)
        #expect(CFErrorCopyDescription(nil) == "")
    }
}
