// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file
// Another source file as it is written for Apple platforms: Foundation comes with LocalAuthentication, names are qualified, and an import is
// limited to one declaration.

import LocalAuthentication
import Security
import func Security.SecRandomCopyBytes

public struct TokenPrompt {
    public let deadline = Date.distantFuture

    public init() {}

    public func accessControl() -> SecAccessControl? {
        Security.SecAccessControlCreateWithFlags(nil, Security.kSecAttrAccessibleWhenUnlocked, .userPresence, nil)
    }

    public func nonce() -> Data? {
        var bytes = [UInt8](repeating: 0, count: 16)
        return SecRandomCopyBytes(kSecRandomDefault, bytes.count, &bytes) == errSecSuccess ? Data(bytes) : nil
    }

    public func canAsk() -> Bool {
        var error: NSError?
        return LocalAuthentication.LAContext().canEvaluatePolicy(.deviceOwnerAuthentication, error: &error)
    }
}
