// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// A store's keybag as stored: every key wrapped, the whole authenticated.
///
/// Immutable: a change makes a new document of a higher generation. There is none whose authentication was not checked.
package struct KeybagDocument: Sendable {
    /// How many copies a store keeps.
    package static let copyCount = 2

    package let storeID: StoreID
    /// Rises with each change.
    package let generation: UInt64
    package let protector: ProtectorRecord
    let wrappedIndexKey: [UInt8]
    let wrappedRowTagKey: [UInt8]
    let classKeys: [ClassKeyEntry]
    /// The canonical bytes, to be stored `copyCount` times.
    package let encoded: [UInt8]

    /// Which protector holds the store's device secret, and what that protector needs to find it.
    package struct ProtectorRecord: Hashable, Sendable {
        package let kind: DeviceProtectorKind
        /// The protector's own, opaque here, and not a secret.
        package let parameters: [UInt8]

        package init(kind: DeviceProtectorKind, parameters: [UInt8] = []) {
            self.kind = kind
            self.parameters = parameters
        }
    }

    /// One generation of one class key.
    struct ClassKeyEntry: Sendable {
        let accessibility: Accessibility
        let generation: UInt32
        /// Under the device key: this version knows no other way.
        let wrappedKey: [UInt8]
        let checkValue: [UInt8]
    }

    /// What of a keybag is decided before it is encoded.
    struct Content {
        var generation: UInt64
        var protector: ProtectorRecord
        var wrappedIndexKey: [UInt8]
        var wrappedRowTagKey: [UInt8]
        /// In ascending order of class code and generation.
        var classKeys: [ClassKeyEntry]
    }

    init(storeID: StoreID, content: Content, encoded: [UInt8]) {
        self.storeID = storeID
        generation = content.generation
        protector = content.protector
        wrappedIndexKey = content.wrappedIndexKey
        wrappedRowTagKey = content.wrappedRowTagKey
        classKeys = content.classKeys
        self.encoded = encoded
    }
}
