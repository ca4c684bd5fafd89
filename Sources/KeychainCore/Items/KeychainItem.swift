// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// An item as returned by a keychain.
package struct KeychainItem: Sendable {
    package let reference: PersistentReference
    /// The attributes that the search requested.
    ///
    /// A full set includes access group, dates, accessibility, `sync`, `tomb`, `musr`, and `sha1`.
    package let attributes: ItemAttributes
    package let accessControl: AccessControl
    /// The secret; nil if it was not requested or the item has none.
    package let secret: Data?

    package init(reference: PersistentReference, attributes: ItemAttributes, accessControl: AccessControl, secret: Data?) {
        self.reference = reference
        self.attributes = attributes
        self.accessControl = accessControl
        self.secret = secret
    }
}

/// A reference that identifies an item across updates: twenty bytes, four ASCII letters of the class and the item's identifier.
package struct PersistentReference: Hashable, Sendable {
    package let itemClass: ItemClass
    package let id: ItemID

    package static let byteCount = 20

    package init(itemClass: ItemClass, id: ItemID) {
        self.itemClass = itemClass
        self.id = id
    }

    /// Parses a reference; nil if the size is wrong or the class is unknown.
    package init?(_ data: Data) {
        guard data.count == Self.byteCount,
            let name = String(validating: data.prefix(4), as: UTF8.self), let itemClass = ItemClass(rawValue: name),
            let id = ItemID(data.suffix(16))
        else { return nil }
        self.init(itemClass: itemClass, id: id)
    }

    package var data: Data { Data(itemClass.rawValue.utf8) + Data(id.bytes) }
}
