// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import SecurityAPI

@Suite("Statuses")
struct StatusTests {
    @Test("The codes are the same as on Apple platforms", arguments: appleStatuses)
    func codes(name: String, status: OSStatus, number: OSStatus) {
        #expect(status == number)
    }

    @Test("Every status has a distinct message")
    func messages() {
        let messages = appleStatuses.map { SecCopyErrorMessageString($0.status, nil) ?? "" }
        #expect(Set(messages).count == appleStatuses.count)
        for (status, message) in zip(appleStatuses, messages) {
            #expect(!message.isEmpty && message != "OSStatus \(status.number)", "\(status.name)")
        }
    }

    @Test("The tables of messages have no status in common, and none that Apple lacks")
    func tables() {
        let listed = statusMessages.flatMap(\.keys)
        #expect(listed.count == Set(listed).count)
        #expect(Set(listed) == Set(appleStatuses.map(\.number)))
    }

    @Test("The message of an unknown status contains its number", arguments: [1, -1, .min, .max] as [OSStatus])
    func unknown(status: OSStatus) {
        #expect(SecCopyErrorMessageString(status, nil) == "OSStatus \(status)")
    }
}

// The pointers below point into variables that are large enough and live longer than the call.

@Suite("SecRandomCopyBytes")
struct SecRandomCopyBytesTests {
    @Test("Exactly the requested number of bytes is written", arguments: [1, 7, 8, 9, 16, 32, 1000])
    func count(byteCount: Int) {
        // A byte that is zero in every call was not written: by chance this happens once in 2^160 calls.
        var touched = [UInt8](repeating: 0, count: byteCount)
        for _ in 0..<20 {
            var bytes = [UInt8](repeating: 0, count: byteCount + 8)
            #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, byteCount, &bytes) == errSecSuccess)
            #expect(bytes.suffix(8).allSatisfy { $0 == 0 })
            for position in 0..<byteCount { touched[position] |= bytes[position] }
        }
        #expect(touched.allSatisfy { $0 != 0 })
    }

    @Test("Two calls return different bytes")
    func twice() {
        var first = [UInt8](repeating: 0, count: 32)
        var second = first
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, 32, &first) == errSecSuccess)
        #expect(unsafe SecRandomCopyBytes(nil, 32, &second) == errSecSuccess)
        #expect(first != second)
    }

    @Test("With a count of zero, nothing is written")
    func none() {
        var byte: UInt8 = 7
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, 0, &byte) == errSecSuccess)
        #expect(byte == 7)
    }

    @Test("A negative count is rejected, and nothing is written", arguments: [-1, Int.min])
    func negative(byteCount: Int) {
        var byte: UInt8 = 7
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, byteCount, &byte) == errSecParam)
        #expect(byte == 7)
    }
}

@Suite("Core Foundation's names")
struct CoreFoundationTests {
    @Test("Each type has a distinct type identifier")
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

    @Test("An error has its domain, code, user info and description")
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
