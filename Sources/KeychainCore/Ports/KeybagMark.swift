// SPDX-License-Identifier: Apache-2.0

/// Tells one keybag of a store from every other, those of the same generation too: two processes may change it at the same time, and
/// only one of the two becomes the store's.
package struct KeybagMark: Hashable, Sendable {
    /// Rises with each change.
    package let generation: UInt64
    /// From the code that authenticates the keybag; no secret.
    package let tag: UInt64

    package init(generation: UInt64, tag: UInt64 = 0) {
        self.generation = generation
        self.tag = tag
    }
}
