// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import Testing

/// An access control object, or the test's failure.
func accessControl(_ protection: CFString, _ flags: SecAccessControlCreateFlags) throws -> SecAccessControl {
    let control = SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, flags, nil)
    return try #require(control)
}
