// SPDX-License-Identifier: Apache-2.0

/// All digests of an item: what its row is found by and kept unique by.
struct RowDigests {
    let service: IndexDigest
    let account: IndexDigest
    let remainingKey: IndexDigest
    let accessGroup: IndexDigest
    let others: [AttributeDigest]

    init(of attributes: ItemAttributes, in itemClass: ItemClass, using digests: DigestCache) throws(KeychainFailure) {
        let leading = PrimaryKey.leading(of: itemClass)
        func digest(_ attribute: Attribute) throws(KeychainFailure) -> IndexDigest {
            let value = attributes[attribute] ?? PrimaryKey.defaultValue(of: attribute)
            return try digests.digest(of: value, for: attribute, in: itemClass)
        }
        service = try digest(leading.service)
        account = try digest(leading.account)
        accessGroup = try digest(.accessGroup)
        remainingKey = try digests.remainingKeyDigest(of: attributes, in: itemClass)
        var others: [AttributeDigest] = []
        for entry in attributes.entries where Self.hasDigestOfItsOwn(entry.attribute, entry.value, in: itemClass) {
            others.append(AttributeDigest(entry.attribute, try digest(entry.attribute)))
        }
        self.others = others
    }

    /// The search that finds whatever has the same primary key.
    func samePrimaryKey(in itemClass: ItemClass) -> RowQuery {
        RowQuery(itemClass: itemClass, serviceDigest: service, accountDigest: account, remainingKeyDigest: remainingKey)
    }

    /// Dates and `sha1` are never indexed; class, flags and the leading attributes have columns; a part of the primary key
    /// at its default is told by having no digest.
    static func hasDigestOfItsOwn(_ attribute: Attribute, _ value: AttributeValue, in itemClass: ItemClass) -> Bool {
        let leading = PrimaryKey.leading(of: itemClass)
        switch attribute {
        case leading.service, leading.account, .accessGroup, .accessible, .synchronizable, .tombstone, .creationDate,
            .modificationDate, .sha1:
            return false
        default:
            return !isDefaultOfPrimaryKey(attribute, value, in: itemClass)
        }
    }

    static func isDefaultOfPrimaryKey(_ attribute: Attribute, _ value: AttributeValue, in itemClass: ItemClass) -> Bool {
        PrimaryKey.attributes(of: itemClass).contains(attribute) && value.matches(PrimaryKey.defaultValue(of: attribute))
    }
}
