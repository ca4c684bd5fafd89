// SPDX-License-Identifier: Apache-2.0

/// Which items a call is about: parsed from a dictionary once, typed from then on.
package struct ItemQuery: Sendable {
    package var itemClass: ItemClass
    /// The item itself, by its persistent reference.
    ///
    /// Then local and synchronizable items are found alike.
    package var reference: PersistentReference?
    /// Values that must be equal, AND-ed.
    ///
    /// Holds `agrp`, `pdmn`, `musr`, dates and `sha1` too; never `sync` or `tomb`.
    package var attributes: ItemAttributes
    package var twin: Twin
    package var tombstones: Tombstones
    /// Keep internet passwords whose server is this host or a host below it.
    package var hostOrSubdomain: String?

    /// Local items and synchronizable ones live side by side; which of them a search sees.
    package enum Twin: Sendable {
        case local, synchronizable, either
    }

    /// What synchronizable items leave behind when deleted is invisible unless asked for.
    package enum Tombstones: Sendable {
        case hidden, only
    }

    package init(
        itemClass: ItemClass, reference: PersistentReference? = nil, attributes: ItemAttributes = ItemAttributes(),
        twin: Twin = .local, tombstones: Tombstones = .hidden, hostOrSubdomain: String? = nil
    ) {
        self.itemClass = itemClass
        self.reference = reference
        self.attributes = attributes
        self.twin = twin
        self.tombstones = tombstones
        self.hostOrSubdomain = hostOrSubdomain
    }
}
