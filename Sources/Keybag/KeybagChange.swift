// SPDX-License-Identifier: Apache-2.0

/// A keybag that is to take the place of another: to be stored first, and only then to be used.
package struct KeybagChange: Sendable {
    package let document: KeybagDocument
    /// The class keys of `document`; nil when the change was made without them.
    package let keys: UnlockedKeys?
}
