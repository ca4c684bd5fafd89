// SPDX-License-Identifier: Apache-2.0

/// What is at hand to satisfy constraints with, beside the class key.
package struct ConstraintKeys: Sendable {
    package var presence: PresenceRelease?
    package var applicationPassword: ApplicationPassword?

    package init(presence: PresenceRelease? = nil, applicationPassword: ApplicationPassword? = nil) {
        self.presence = presence
        self.applicationPassword = applicationPassword
    }
}
