// SPDX-License-Identifier: Apache-2.0
public import Foundation

/// A key with its value, on the way from one place of the keychain to another.
public struct MigratableKeyValuePair<Key: Hashable>: Hashable {
    /// The key.
    ///
    /// What is read from the keychain is a String or, for items of other programs, possibly Data or a number.
    public let key: Key
    /// The value, as bytes.
    public let value: Data

    /// A pair with bytes for its value.
    ///
    /// - Parameters:
    ///   - key: The key; migrating into a valet needs one that is not empty.
    ///   - value: The value; migrating into a valet needs one that is not empty.
    public init(key: Key, value: Data) {
        self.key = key
        self.value = value
    }

    /// A pair with text for its value.
    ///
    /// - Parameters:
    ///   - key: The key; migrating into a valet needs one that is not empty.
    ///   - value: The value, kept as UTF-8; migrating into a valet needs one that is not empty.
    public init(key: Key, value: String) {
        self.init(key: key, value: Data(value.utf8))
    }
}

extension MigratableKeyValuePair: Sendable where Key: Sendable {}
