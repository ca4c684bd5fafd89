// SPDX-License-Identifier: Apache-2.0

/// Read access to the items that synchronize, in the transaction of the ledger.
///
/// Implemented by KeychainCore's operations on a sealed keychain, which open and seal rows.
package protocol SyncItemReading {
    /// Returns whether the keys of a lane's class are available now.
    func isAvailable(_ lane: Lane) throws(KeychainFailure) -> Bool

    /// Returns the row of an item; nil if there is none, it is a tombstone, or it does not synchronize. Needs no class key.
    func localItem(_ item: ItemID) throws(KeychainFailure) -> LocalItem?

    /// Opens the content of a row and describes it.
    ///
    /// Returns nil if the row is damaged. Throws `.interactionNotAllowed` while the class is locked.
    func summary(of item: ItemID) throws(KeychainFailure) -> ContentSummary?

    /// Opens the content of a live version, in `items` or in the conflict copies.
    ///
    /// Returns nil if the row is damaged, of another revision, or not there. Throws `.interactionNotAllowed` while the class is locked.
    func content(of version: LiveVersion) throws(KeychainFailure) -> SyncContent?

    /// Describes a received content; nil if it is not an item that may synchronize, or if a date is not finite. Needs no class key.
    func summary(of content: SyncContent) throws(KeychainFailure) -> ContentSummary?
}

/// Write access to the items that synchronize.
///
/// No write is recorded as a change by a program.
package protocol SyncItemWriting: SyncItemReading {
    /// Stores a content in a new conflict copy.
    func addCopy(_ content: SyncContent, of version: LiveVersion) throws(KeychainFailure)

    /// Removes a conflict copy. Succeeds if there is none.
    func removeCopy(of reference: VersionReference) throws(KeychainFailure)

    /// Changes the reference of a conflict copy.
    func renameCopy(_ reference: VersionReference, to other: VersionReference) throws(KeychainFailure)

    /// Moves the content of the row to a new conflict copy of the version, and leaves the row, which `show` or `removeItem` follows.
    func moveToCopy(_ item: ItemID, of version: LiveVersion) throws(KeychainFailure)

    /// Writes a content into the row of an item, or into a new row if `item` is nil, with the version's identifier as its revision.
    ///
    /// Attributes and both dates stay as they are. A damaged row is quarantined first.
    func show(_ content: SyncContent, of version: LiveVersion, in item: ItemID?) throws(KeychainFailure) -> Placement

    /// Removes the row of an item. Succeeds if there is none.
    func removeItem(_ item: ItemID) throws(KeychainFailure)
}

/// The row of an item, as far as it is known without its class key.
package struct LocalItem: Hashable, Sendable {
    package let item: ItemID
    package let name: ItemName
    /// Nil if the item must not leave the device.
    package let lane: Lane?
    package let revision: SyncVersionID

    package init(item: ItemID, name: ItemName, lane: Lane?, revision: SyncVersionID) {
        self.item = item
        self.name = name
        self.lane = lane
        self.revision = revision
    }
}

/// The result of writing a received version.
package enum Placement: Hashable, Sendable {
    case shown(ItemID)
    /// The row in its place stays: it is of a newer format or generation, or a program keeps it for this device alone.
    case leftAlone
}
