// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore
internal import KeychainSystem

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
        guard let contents = try? TrustedFile.contents(path, byteLimit: byteLimit, owner: .any, subject: "the entitlements file") else {
            throw unreadable(path)
        }
        return try entitlements(in: Data(contents), ofFile: path, defaultIdentifier: defaultIdentifier)
    }

    /// Reads what is in a file.
    static func entitlements(
        in data: Data, ofFile path: String, defaultIdentifier: String
    ) throws(KeychainFailure) -> Entitlements {
        let entries = try entries(in: data, path)
        let macIdentifier = try text("com.apple.application-identifier", in: entries, path)
        let identifier = try text("application-identifier", in: entries, path) ?? macIdentifier
        return Entitlements(
            applicationIdentifier: identifier ?? defaultIdentifier,
            keychainAccessGroups: try list("keychain-access-groups", in: entries, path),
            associatedApplicationIdentifiers: try list(
                "com.apple.developer.associated-application-identifier", in: entries, path),
            applicationGroups: try list("com.apple.security.application-groups", in: entries, path),
            isAppClip: entries["com.apple.developer.on-demand-install-capable"] == .flag(true),
            origin: path
        )
    }

    /// What an entry holds, of the kinds that entitlements have.
    private enum Entry: Decodable, Equatable {
        case text(String)
        case list([String])
        case flag(Bool)
        case other

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let list = try? value.decode([String].self) {
                self = .list(list)
            } else if let flag = try? value.decode(Bool.self) {
                self = .flag(flag)
            } else {
                self = .other
            }
        }
    }

    /// Of the forms that a property list has, the binary one is refused: Foundation reads no damaged one safely.
    ///
    /// `PropertyListDecoder` ends the program where a text of it goes beyond the end. `PropertyListSerialization` makes an array once for
    /// each place that refers to it: two hundred bytes, in which each array has the next one twice, keep it busy for ever.
    private static func entries(in data: Data, _ path: String) throws(KeychainFailure) -> [String: Entry] {
        guard !data.starts(with: Array("bplist".utf8)) else {
            throw KeychainFailure(.missingEntitlement, "the entitlements file \(path) is a binary property list: save it as XML")
        }
        do {
            return try PropertyListDecoder().decode([String: Entry].self, from: data)
        } catch DecodingError.typeMismatch {
            throw KeychainFailure(.missingEntitlement, "the entitlements file \(path) is not a dictionary")
        } catch {
            throw unreadable(path)
        }
    }

    private static func unreadable(_ path: String) -> KeychainFailure {
        KeychainFailure(.missingEntitlement, "the entitlements file \(path) cannot be read as a property list")
    }

    private static func text(
        _ key: String, in entries: [String: Entry], _ path: String
    ) throws(KeychainFailure) -> String? {
        switch entries[key] {
        case nil: return nil
        case .text(let text): return text
        default: throw KeychainFailure(.missingEntitlement, "'\(key)' in \(path) must be a string")
        }
    }

    /// A list, or one string that stands for a list of one.
    private static func list(
        _ key: String, in entries: [String: Entry], _ path: String
    ) throws(KeychainFailure) -> [String] {
        switch entries[key] {
        case nil: return []
        case .text(let single): return [single]
        case .list(let list): return list
        default: throw KeychainFailure(.missingEntitlement, "'\(key)' in \(path) must be an array of strings")
        }
    }
}
