// SPDX-License-Identifier: Apache-2.0

import Foundation

@testable import SecurityAPI

/// The function under test the way Swift callers write it: with an error that is thrown.
func makeAccessControl(_ protection: CFString, _ flags: SecAccessControlCreateFlags) throws -> SecAccessControl {
    var error: Unmanaged<CFError>?
    // The error is retained for us, and read once.
    guard let object = unsafe SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, flags, &error) else {
        throw unsafe error?.takeRetainedValue() ?? NSError(domain: "none was given", code: 0)
    }
    guard unsafe error == nil else { throw NSError(domain: "an error beside an object", code: 0) }
    return object
}

/// The status of a failed call, 0 if it succeeds.
func status(_ body: () throws -> Void) -> OSStatus {
    do {
        try body()
        return 0
    } catch let error as CFError where CFErrorGetDomain(error) == NSOSStatusErrorDomain {
        return OSStatus(CFErrorGetCode(error))
    } catch {
        return 1
    }
}
