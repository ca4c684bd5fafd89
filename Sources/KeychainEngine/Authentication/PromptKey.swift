// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Two who ask the same of the same keychain, in the same words, share one question.
package struct PromptKey: Hashable, Sendable {
    let storeID: StoreID?
    let question: PresenceQuestion
    let classes: Set<Accessibility>
    /// Makes the question one that nobody shares.
    var item: Identifier128?
}
