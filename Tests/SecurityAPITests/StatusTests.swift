// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import SecurityAPI

@Suite("Statuses")
struct StatusTests {
    @Test(
        "The codes are Apple's",
        arguments: zip(
            [
                errSecSuccess, errSecUnimplemented, errSecDiskFull, errSecIO, errSecParam, errSecAllocate, errSecUserCanceled,
                errSecMissingEntitlement, errSecRestrictedAPI, errSecNotAvailable, errSecReadOnly, errSecAuthFailed, errSecDuplicateItem,
                errSecItemNotFound, errSecNoSuchAttr, errSecNoSuchClass, errSecInteractionNotAllowed, errSecDecode, errSecInternalComponent,
                errSecCoreFoundationUnknown, errSecInDarkWake, errSecQuotaExceeded, errSecServiceNotAvailable, errSecNoAccessForItem,
            ],
            [
                0, -4, -34, -36, -50, -108, -128, -34018, -34020, -25291, -25292, -25293, -25299, -25300, -25303, -25306, -25308, -26275,
                -2070, -4960, -25320, -67596, -67585, -25243,
            ] as [OSStatus]))
    func codes(status: OSStatus, code: OSStatus) {
        #expect(status == code)
    }

    @Test("Every status has a message of its own")
    func messages() {
        let messages = statusMessages.keys.map { SecCopyErrorMessageString($0, nil) }
        #expect(Set(messages).count == statusMessages.count)
        #expect(messages.allSatisfy { $0?.isEmpty == false })
        #expect(statusMessages[errSecItemNotFound] != nil)
    }

    @Test("An unknown status is named by its number", arguments: [1, -1, .min, .max] as [OSStatus])
    func unknown(status: OSStatus) {
        #expect(SecCopyErrorMessageString(status, nil) == "OSStatus \(status)")
    }
}
