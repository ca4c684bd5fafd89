// SPDX-License-Identifier: Apache-2.0

/// An item that synchronizes, as far as a record of its changes needs to know it.
package struct SharedItem: Hashable, Sendable {
    package let item: ItemID
    package let revision: Identifier128

    /// Returns nil if a row with these columns does not synchronize.
    ///
    /// An item of a ThisDeviceOnly class never does, whatever its attribute says. A tombstone belongs to SecItem's interface alone.
    package init?(
        item: ItemID, revision: Identifier128, accessibility: ItemAccessibility, isSynchronizable: Bool, isTombstone: Bool
    ) {
        guard isSynchronizable, !isTombstone, Lane(accessibility) != nil else { return nil }
        self.item = item
        self.revision = revision
    }
}

extension RowHeader {
    /// The item of this row, if it synchronizes.
    package var shared: SharedItem? {
        SharedItem(
            item: reference.id, revision: revision, accessibility: accessibility, isSynchronizable: isSynchronizable,
            isTombstone: isTombstone)
    }
}

extension RecordedChange {
    /// Returns the records of a change of one row; nil stands for a row that does not exist or does not synchronize.
    ///
    /// A row that keeps its revision has only been sealed under another key.
    package static func records(from old: SharedItem?, to new: SharedItem?) -> [RecordedChange] {
        guard let new else { return old.map { [RecordedChange(item: $0.item, kind: .deleted)] } ?? [] }
        let written = RecordedChange(item: new.item, kind: .written)
        guard let old else { return [written] }
        guard old.item == new.item else { return [RecordedChange(item: old.item, kind: .deleted), written] }
        return old.revision == new.revision ? [] : [written]
    }
}
