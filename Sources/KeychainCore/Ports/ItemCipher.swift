// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// Seals and opens rows, and computes the digests for searches.
///
/// Implemented by Keybag.
package protocol ItemCipher: Sendable {
    var storeID: StoreID { get }

    /// The public key of the presence key pair; nil while no passcode is set.
    var presencePublicKey: [UInt8]? { get }

    /// Returns the keyed digest of an attribute's value.
    func digest(of value: AttributeValue, for attribute: Attribute, in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// Returns one digest of several attributes in the given order.
    func digest(of values: [(Attribute, AttributeValue)], in itemClass: ItemClass) throws(KeychainFailure) -> IndexDigest

    /// Seals attributes and secret under a random item key, wraps that under the keys of the constraint and then under the class key,
    /// and tags the row.
    ///
    /// The row's header gets the encoded constraint. Throws `.authFailed` if a new constraint can never be satisfied on this platform, and
    /// a failure with `needs` if its application password is missing; it never requires user presence. With the constraint of a former row,
    /// throws the errors of `open`.
    func seal(
        _ attributes: ItemAttributes, secret: Data?, header: RowHeader, constraint: SealingConstraint?, with keys: ConstraintKeys,
        under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow

    /// Opens a row, and keeps the wanted attributes.
    ///
    /// Throws `.decode` if a part was altered or belongs to another row, and a failure with `needs` if `keys` do not satisfy the
    /// constraint.
    func open(
        _ row: SealedRow, includingSecret: Bool, keeping attributes: AttributeSelection, with keys: ConstraintKeys,
        under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> OpenedRow

    /// Opens only the secret, which is half the work; nil if the item has none.
    ///
    /// Throws the errors of `open` that concern the secret and its associated data.
    func openSecret(
        of row: SealedRow, with keys: ConstraintKeys, under classKey: borrowing ClassKey
    ) throws(KeychainFailure) -> Data?

    /// Rewraps a row with access control under another generation of its class key, without authentication.
    ///
    /// Throws `.decode` if the row is not under `oldKey`.
    func rewrapConstrained(
        _ row: SealedRow, from oldKey: borrowing ClassKey, to newKey: borrowing ClassKey
    ) throws(KeychainFailure) -> SealedRow

    /// Returns whether the row is unaltered. Needs no class key, but every part of the row, including the sealed secret.
    func isIntact(_ row: SealedRow) -> Bool

    /// Returns the item's `sha1` attribute: the SHA-1 of all attributes and the secret. Never indexed.
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

/// The constraint of a row that is sealed.
package enum SealingConstraint: Sendable {
    /// With new keys.
    case new(AccessControl.Constraint)
    /// That of the row which is replaced: what opened the former row opens this one, and nothing else does.
    case former(ConstraintRecord)
}

/// The opened content of a row.
package struct OpenedRow: Sendable {
    package let attributes: ItemAttributes
    package let secret: Data?

    package init(attributes: ItemAttributes, secret: Data?) {
        self.attributes = attributes
        self.secret = secret
    }
}
