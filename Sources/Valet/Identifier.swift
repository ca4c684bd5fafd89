// SPDX-License-Identifier: Apache-2.0

/// The name of a valet: a string that is not empty.
///
/// It separates the values of one valet from those of another, so choose a name for the kind of data. It need not contain the name of
/// the program.
public struct Identifier: CustomStringConvertible, ExpressibleByStringLiteral, Sendable {
    /// The name.
    public let description: String

    /// Creates an identifier.
    ///
    /// - Parameter nonEmpty: The name. If it is nil or empty, the initializer returns nil. Names are compared byte by byte, so "é" as one
    ///   scalar and "é" as a letter with a combining accent are different names.
    public init?(nonEmpty: String?) {
        guard let nonEmpty, !nonEmpty.isEmpty else { return nil }
        description = nonEmpty
    }

    /// Creates the identifier from a literal, as in `Valet.valet(with: "account", accessibility: .whenUnlocked)`.
    ///
    /// - Parameter value: The name. It should not be empty; for names that are not written in the source, ``init(nonEmpty:)`` checks that.
    public init(stringLiteral value: StaticString) {
        description = "\(value)"
    }

    /// Creates the identifier of a valet that was created without one.
    init(group: SharedGroupIdentifier) {
        description = group.group
    }
}

/// The name of an access group, whose items several programs share.
///
/// The full name, `prefix.group`, must be in the program's entitlements. Otherwise every call throws
/// ``KeychainError/missingEntitlement``. Source: Apple, "Sharing access to keychain items among a collection of apps".
public struct SharedGroupIdentifier: CustomStringConvertible, Sendable {
    /// The part before the dot: an App ID prefix, or `group`.
    let prefix: String
    /// The group without its prefix.
    let group: String

    /// Creates the identifier of a group listed under `keychain-access-groups`.
    ///
    /// - Parameters:
    ///   - appIDPrefix: The App ID prefix of the developer, without the dot. If it is empty, the initializer returns nil.
    ///   - nonEmptyGroup: The group without the prefix. If it is nil or empty, the initializer returns nil.
    public init?(appIDPrefix: String, nonEmptyGroup: String?) {
        guard !appIDPrefix.isEmpty, let nonEmptyGroup, !nonEmptyGroup.isEmpty else { return nil }
        prefix = appIDPrefix
        group = nonEmptyGroup
    }

    /// Creates the identifier of a group listed under `com.apple.security.application-groups`.
    ///
    /// - Parameters:
    ///   - groupPrefix: On macOS the App ID prefix, on other platforms `"group"`. For any other prefix the initializer returns nil.
    ///   - nonEmptyGroup: The group without the prefix. If it is nil or empty, the initializer returns nil.
    public init?(groupPrefix: String, nonEmptyGroup: String?) {
        guard PlatformRules.isApplicationGroupPrefix(groupPrefix), let nonEmptyGroup, !nonEmptyGroup.isEmpty else { return nil }
        prefix = groupPrefix
        group = nonEmptyGroup
    }

    /// The full name of the access group: `prefix.group`.
    public var description: String { "\(prefix).\(group)" }
}
