// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// An item as the keychain gives it back.
package struct KeychainItem: Sendable {
    package let reference: PersistentReference
    /// The attributes that the search wanted.
    ///
    /// All of them are with access group, dates, accessibility, `sync`, `tomb`, `musr` and `sha1`.
    package let attributes: ItemAttributes
    package let accessControl: AccessControl
    /// The secret.
    ///
    /// Nil: it was not asked for, or the item was stored without one.
    package let secret: Data?

    package init(reference: PersistentReference, attributes: ItemAttributes, accessControl: AccessControl, secret: Data?) {
        self.reference = reference
        self.attributes = attributes
        self.accessControl = accessControl
        self.secret = secret
    }
}
