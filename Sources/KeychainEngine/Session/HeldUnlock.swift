// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// What one unlock has given to a holder.
struct HeldUnlock {
    let holder: any KeyHolder
    var tickets: [KeyHolderSlot: UInt64] = [:]

    /// Lets go of exactly that, and of nothing that another unlock has put in its place.
    func takeBack(where isMeant: (KeyHolderSlot) -> Bool) {
        for (slot, ticket) in tickets where isMeant(slot) { holder.discard(slot, ticket: ticket) }
    }
}
