// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

/// An entitlements property list under Apple's keys.
///
/// Source: Apple, "Entitlements": `application-identifier` (`com.apple.application-identifier` on macOS),
/// `keychain-access-groups`, `com.apple.developer.associated-application-identifier`,
/// `com.apple.security.application-groups`.
package enum EntitlementsFile {
    /// More than any list of groups needs; a larger file is a mistake.
    private static let byteLimit = 1 << 20

    /// Reads the file.
    ///
    /// Throws `.missingEntitlement`, naming file and entry, when it is unreadable or not of this form: a program whose
    /// entitlements cannot be read has none.
    package static func entitlements(atPath path: String, defaultIdentifier: String) throws(KeychainFailure) -> Entitlements {
        let dictionary = try propertyList(atPath: path)
        let identifierOfMac = try text("com.apple.application-identifier", in: dictionary, path)
        let identifier = try text("application-identifier", in: dictionary, path) ?? identifierOfMac
        return Entitlements(
            applicationIdentifier: identifier ?? defaultIdentifier,
            keychainAccessGroups: try list("keychain-access-groups", in: dictionary, path),
            associatedApplicationIdentifiers: try list(
                "com.apple.developer.associated-application-identifier", in: dictionary, path),
            applicationGroups: try list("com.apple.security.application-groups", in: dictionary, path),
            isAppClip: dictionary["com.apple.developer.on-demand-install-capable"] as? Bool ?? false,
            origin: path
        )
    }

    private static func propertyList(atPath path: String) throws(KeychainFailure) -> [String: Any] {
        let parsed: Any
        do {
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            guard data.count <= byteLimit else { throw CocoaError(.fileReadTooLarge) }
            // Unsafe by its out-parameter for the format, which is not asked for.
            parsed = try unsafe PropertyListSerialization.propertyList(from: data, format: nil)
        } catch {
            throw KeychainFailure(.missingEntitlement, "the entitlements file \(path) cannot be read as a property list")
        }
        guard let dictionary = parsed as? [String: Any] else {
            throw KeychainFailure(.missingEntitlement, "the entitlements file \(path) is not a dictionary")
        }
        return dictionary
    }

    private static func text(
        _ key: String, in dictionary: [String: Any], _ path: String
    ) throws(KeychainFailure) -> String? {
        guard let value = dictionary[key] else { return nil }
        guard let text = value as? String else {
            throw KeychainFailure(.missingEntitlement, "'\(key)' in \(path) must be a string")
        }
        return text
    }

    /// A list, or one string that stands for a list of one.
    private static func list(
        _ key: String, in dictionary: [String: Any], _ path: String
    ) throws(KeychainFailure) -> [String] {
        guard let value = dictionary[key] else { return [] }
        if let single = value as? String { return [single] }
        guard let list = value as? [String] else {
            throw KeychainFailure(.missingEntitlement, "'\(key)' in \(path) must be an array of strings")
        }
        return list
    }
}
