// SPDX-License-Identifier: Apache-2.0

extension SealedKeychain {
    package func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try forOneCall(request.authentication).addItem(request)
    }

    private func addItem(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        let (group, control) = try entitlements.admit(request)
        var attributes = Self.completed(request.attributes, itemClass: request.itemClass, group: group, control: control)
        let now = clock.now()
        attributes[.creationDate] = .date(now)
        attributes[.modificationDate] = .date(now)

        // Sealed before looking for a twin: a locked class answers "locked", not "duplicate".
        let fresh = PersistentReference(itemClass: request.itemClass, id: .random())
        let row = try seal(&attributes, secret: request.secret, reference: fresh, control: control)
        let reference = try write(sharesFlush: isShort(secret: request.secret)) { writing throws(KeychainFailure) in
            guard let inherited = try clearWay(for: row, in: writing) else {
                try writing.insert(row)
                return fresh
            }
            try writing.insert(
                try seal(&attributes, secret: request.secret, reference: inherited, control: control)
            )
            return inherited
        }
        return KeychainItem(reference: reference, attributes: attributes, accessControl: control, secret: request.secret)
    }

    /// Fills in what every item has.
    static func completed(
        _ given: ItemAttributes, itemClass: ItemClass, group: String, control: AccessControl
    ) -> ItemAttributes {
        var attributes = given
        for attribute in PrimaryKey.attributes(of: itemClass) where attributes[attribute] == nil {
            // Absent hints and token identifiers are not shown as empty ones.
            if attribute == .syncViewHint || attribute == .tokenID { continue }
            attributes[attribute] = PrimaryKey.defaultValue(of: attribute)
        }
        attributes[.accessGroup] = .string(group)
        attributes[.accessible] = .string(control.accessibility.rawValue)
        attributes[.tombstone] = .number(0)
        return attributes
    }
}
