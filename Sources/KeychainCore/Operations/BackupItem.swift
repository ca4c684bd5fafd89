// SPDX-License-Identifier: Apache-2.0
package import FoundationEssentials

/// An item as a portable backup holds it: in clear, so only ever inside an encrypted file.
package struct BackupItem: Sendable {
    package let reference: PersistentReference
    package let accessibility: Accessibility
    /// All of them, dates and flags included.
    package let attributes: ItemAttributes
    package let secret: Data?

    package init(reference: PersistentReference, accessibility: Accessibility, attributes: ItemAttributes, secret: Data?) {
        self.reference = reference
        self.accessibility = accessibility
        self.attributes = attributes
        self.secret = secret
    }
}

/// What a portable backup took, and what stayed behind, and why.
package struct BackupSummary: Hashable, Sendable {
    package var savedCount = 0
    /// Their class says that they never leave this device.
    package var thisDeviceOnlyCount = 0
    /// They have access control, whose keys are this device's.
    package var constrainedCount = 0
    /// They cannot be opened: damaged, or written by a newer version.
    package var unreadableCount = 0

    package init() {}

    package var leftBehindCount: Int { thisDeviceOnlyCount + constrainedCount + unreadableCount }
}

/// What restoring a backup did, or would do.
package struct RestoreSummary: Hashable, Sendable {
    /// An item that the backup has and that was left as it is in the keychain.
    package struct Conflict: Hashable, Sendable {
        package let service: String
        package let account: String
        package let reason: Reason
    }

    package enum Reason: Hashable, Sendable {
        /// The keychain's was changed later.
        case newerInKeychain
        /// Both were changed at the same time, and are not the same.
        case differentOfSameDate
        /// The keychain's has access control, so what it holds is not known here.
        case protectedInKeychain
    }

    package var addedCount = 0
    /// The keychain had an older one.
    package var replacedCount = 0
    package var unchangedCount = 0
    package var conflicts: [Conflict] = []

    package init() {}
}
