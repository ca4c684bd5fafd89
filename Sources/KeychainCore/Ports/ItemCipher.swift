// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// Seals and opens rows, and makes the digests they are found by.
///
/// Implemented by Keybag.
package protocol ItemCipher: Sendable {
    var storeID: StoreID { get }

    /// The keyed digest under which a value of an attribute is searched.
    func digest(of value: AttributeValue, for attribute: Attribute, in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// The digest of several attributes together, in the given order.
    func digest(of values: [(Attribute, AttributeValue)], in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// Seals attributes and secret under a fresh item key, wraps that under the class key, and tags the row.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow

    /// Opens a row. Throws `.decode` when any part was altered, or is not this row's.
    func open(
        _ row: SealedRow, includingSecret: Bool, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow

    /// Opens the secret alone: half the work, where nothing else is wanted. Nil: the item has none.
    ///
    /// Throws `.decode` when the secret, or anything it is bound to, was altered.
    func openSecret(of row: SealedRow, under classKey: borrowing ClassKey) throws(KeychainFailure) -> Data?

    /// Whether the row is as it was written, told without any class key. Needs every part, the sealed secret too.
    func isIntact(_ row: SealedRow) throws(KeychainFailure) -> Bool

    /// The item's SHA-1 as Keychain Services shows it: over all attributes and the secret. Never indexed.
    func fingerprint(of attributes: ItemAttributes, secret: Data?) -> Data
}

/// What was sealed in a row.
package struct OpenedRow: Sendable {
    package let attributes: ItemAttributes
    package let secret: Data?

    package init(attributes: ItemAttributes, secret: Data?) {
        self.attributes = attributes
        self.secret = secret
    }
}
