// SPDX-License-Identifier: Apache-2.0

/// How a call may satisfy access control: with what is at hand already, and by asking.
package struct Authentication: Sendable {
    /// Whether somebody may be asked (`kSecUseAuthenticationUI`).
    package enum Interaction: Hashable, Sendable {
        case allowed
        /// A call that would have to ask answers `.interactionNotAllowed`.
        case forbidden
        /// Items with access control are passed over, in searches.
        case skippingItems
    }

    package var interaction: Interaction
    /// What earlier answers released (`kSecUseAuthenticationContext`); nil: nothing, and an answer serves this call alone.
    package var context: AuthenticationContext?
    /// The program's own words for the person (`kSecUseOperationPrompt`).
    package var prompt: String?

    package init(interaction: Interaction = .allowed, context: AuthenticationContext? = nil, prompt: String? = nil) {
        self.interaction = interaction
        self.context = context
        self.prompt = prompt
    }

    /// Whether somebody may be asked, by what the call says and by what its context says.
    package var mayAsk: Bool { interaction == .allowed && context?.settings.isInteractionAllowed != false }
}
