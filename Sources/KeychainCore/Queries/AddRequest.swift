// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// `SecItemAdd`, typed.
package struct AddRequest: Sendable {
    package var itemClass: ItemClass
    /// As the caller gave them, with `sync` and `tomb` as 0 or 1; without `pdmn`, which is in `accessControl`.
    package var attributes: ItemAttributes
    /// Nil adds an item without a secret, which is not the same as an empty one.
    package var secret: Data?
    /// Nil: the default of the class and group.
    package var accessControl: AccessControl?
    package var authentication: Authentication

    package init(
        itemClass: ItemClass, attributes: ItemAttributes = ItemAttributes(), secret: Data? = nil, accessControl: AccessControl? = nil,
        authentication: Authentication = Authentication()
    ) {
        self.itemClass = itemClass
        self.attributes = attributes
        self.secret = secret
        self.accessControl = accessControl
        self.authentication = authentication
    }
}
