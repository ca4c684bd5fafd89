// SPDX-License-Identifier: Apache-2.0

/// The name of a valet: a string that is not empty.
///
/// It separates the values of one valet from those of another, so choose a name for the kind of data kept there.
/// The name of the program need not be in it.
public struct Identifier: CustomStringConvertible, Sendable {
    /// The name as it was given.
    public let description: String

    /// Makes an identifier, or nil where there is no text to make it of.
    ///
    /// - Parameter nonEmpty: The name; nil and the empty string give nil. Compared byte by byte, so "é" as one
    ///   character and "é" as a letter with an accent are two names.
    public init?(nonEmpty: String?) {
        guard let nonEmpty, !nonEmpty.isEmpty else { return nil }
        description = nonEmpty
    }

    /// A group has text too, so it can stand in where no identifier was given.
    init(group: SharedGroupIdentifier) {
        description = group.group
    }
}

/// The name of an access group: where programs of one maker keep what they share.
///
/// The full name, `prefix.group`, must be in the program's entitlements; else every use answers
/// ``KeychainError/missingEntitlement``. Source: Apple, "Sharing access to keychain items among a collection of apps".
public struct SharedGroupIdentifier: CustomStringConvertible, Sendable {
    /// What stands before the dot: an App ID prefix, or `group`.
    let prefix: String
    /// The group without its prefix.
    let group: String

    /// Names a group listed under `keychain-access-groups`.
    ///
    /// - Parameters:
    ///   - appIDPrefix: The App ID prefix of the maker, without the dot; the empty string gives nil.
    ///   - nonEmptyGroup: The group without the prefix; nil and the empty string give nil.
    public init?(appIDPrefix: String, nonEmptyGroup: String?) {
        guard !appIDPrefix.isEmpty, let nonEmptyGroup, !nonEmptyGroup.isEmpty else { return nil }
        prefix = appIDPrefix
        group = nonEmptyGroup
    }

    /// Names a group listed under `com.apple.security.application-groups`.
    ///
    /// - Parameters:
    ///   - groupPrefix: On macOS the App ID prefix; everywhere else `"group"`, and anything else gives nil.
    ///   - nonEmptyGroup: The group without the prefix; nil and the empty string give nil.
    public init?(groupPrefix: String, nonEmptyGroup: String?) {
        guard PlatformRules.isApplicationGroupPrefix(groupPrefix), let nonEmptyGroup, !nonEmptyGroup.isEmpty else { return nil }
        prefix = groupPrefix
        group = nonEmptyGroup
    }

    /// The full name of the access group: `prefix.group`.
    public var description: String { "\(prefix).\(group)" }
}
