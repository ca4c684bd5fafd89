// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// Seals and opens rows, and makes the digests they are found by.
///
/// Implemented by Keybag.
package protocol ItemCipher: Sendable {
    var storeID: StoreID { get }

    /// The public half of the presence key pair; nil while no passcode is set.
    var presencePublicKey: [UInt8]? { get }

    /// The keyed digest under which a value of an attribute is searched.
    func digest(of value: AttributeValue, for attribute: Attribute, in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// The digest of several attributes together, in the given order.
    func digest(of values: [(Attribute, AttributeValue)], in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// Seals attributes and secret under a fresh item key, wraps that under the keys of the constraint and then under the class key,
    /// and tags the row.
    ///
    /// The row's header gets what the constraint is kept as. Throws `.authFailed` for a constraint that nobody here could satisfy, and
    /// a failure that needs the application password where that is missing; the person is never needed.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, constraint: AccessControl.Constraint?, with keys: ConstraintKeys,
        under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow

    /// Opens a row, and keeps the attributes that are wanted.
    ///
    /// Throws `.decode` when any part was altered, or is not this row's, and a failure that needs what `keys` lacks of the constraint.
    func open(
        _ row: SealedRow, includingSecret: Bool, keeping attributes: AttributeSelection, with keys: ConstraintKeys,
        under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow

    /// Opens the secret alone: half the work, where nothing else is wanted. Nil: the item has none.
    ///
    /// Throws as `open`, for the secret and what it is bound to.
    func openSecret(
        of row: SealedRow, with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> Data?

    /// A row with access control under another generation of its class key: the same item, without anybody being asked.
    ///
    /// Throws `.decode` when it is not under `oldKey`.
    func rewrapConstrained(
        _ row: SealedRow, from oldKey: borrowing ClassKey, to newKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow

    /// Whether the row is as it was written, told without any class key. Needs every part, the sealed secret too.
    func isIntact(_ row: SealedRow) throws(KeychainFailure) -> Bool

    /// The item's SHA-1 as Keychain Services shows it: over all attributes and the secret. Never indexed.
    func fingerprint(of attributes: ItemAttributes, secret: Data?) -> Data
}

extension ItemCipher {
    /// Opens a row with all its attributes.
    package func open(
        _ row: SealedRow, includingSecret: Bool, with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow {
        try open(row, includingSecret: includingSecret, keeping: .all, with: keys, under: classKey)
    }
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
