// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// What names an item across updates: its class in four ASCII letters, then the item's identifier.
///
/// Twenty bytes.
package struct PersistentReference: Hashable, Sendable {
    package let itemClass: ItemClass
    package let id: ItemID

    package static let byteCount = 20

    package init(itemClass: ItemClass, id: ItemID) {
        self.itemClass = itemClass
        self.id = id
    }

    /// Parses a reference; nil for every other length and for an unknown class.
    package init?(_ data: Data) {
        guard data.count == Self.byteCount,
            let name = String(validating: data.prefix(4), as: UTF8.self), let itemClass = ItemClass(rawValue: name),
            let id = ItemID(data.suffix(16))
        else { return nil }
        self.init(itemClass: itemClass, id: id)
    }

    package var data: Data { Data(itemClass.rawValue.utf8) + Data(id.bytes) }
}
