// SPDX-License-Identifier: Apache-2.0

/// What a program may reach: its application identifier and access groups, in the order of the default for new items.
///
/// Source: Apple, "Sharing access to keychain items among a collection of apps".
package struct Entitlements: Hashable, Sendable {
    package let applicationIdentifier: String
    /// All groups in order: keychain access groups, associated identifiers, the application identifier, application groups.
    ///
    /// The first is where new items go.
    package let accessGroups: [String]
    /// An app clip may use its own group only and may not synchronise.
    package let isAppClip: Bool
    /// Where this was read, for the message that tells what to add: a file's path or a phrase.
    package let origin: String

    /// The group that tokens publish into: readable, never writable.
    package static let tokenGroup = "com.apple.token"

    package init(
        applicationIdentifier: String,
        keychainAccessGroups: [String] = [],
        associatedApplicationIdentifiers: [String] = [],
        applicationGroups: [String] = [],
        isAppClip: Bool = false,
        origin: String = "the program's defaults"
    ) {
        self.applicationIdentifier = applicationIdentifier
        let own = applicationIdentifier.isEmpty ? [] : [applicationIdentifier]
        var ordered: [String] = []
        for group in keychainAccessGroups + associatedApplicationIdentifiers + own + applicationGroups
        where !group.isEmpty && !ordered.contains(where: group.hasSameBytes) {
            ordered.append(group)
        }
        accessGroups = ordered.filter { $0 != Self.tokenGroup } + ordered.filter { $0 == Self.tokenGroup }
        self.isAppClip = isAppClip
        self.origin = origin
    }

    /// The group for new items that name none.
    package var defaultGroup: String? { accessGroups.first { $0 != Self.tokenGroup } }

    package func canRead(_ group: String) -> Bool { accessGroups.contains(where: group.hasSameBytes) }

    package func canWrite(_ group: String) -> Bool { group != Self.tokenGroup && canRead(group) }
}
