// SPDX-License-Identifier: Apache-2.0

/// What is to be done with what an access control object protects (Apple: LAAccessControlOperation).
public enum LAAccessControlOperation: Int, Sendable {
    /// Adding an item.
    case createItem = 0
    /// Reading or changing an item.
    case useItem = 1
    /// Making a key.
    ///
    /// This keychain has no keys: refused.
    case createKey = 2
    /// Signing with a key: refused, as for `createKey`.
    case useKeySign = 3
    /// Decrypting with a key: refused, as for `createKey`.
    case useKeyDecrypt = 4
    /// Agreeing on a key: refused, as for `createKey`.
    case useKeyKeyExchange = 5
}
