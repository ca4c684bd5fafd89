// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore
internal import KeychainSystem

/// An entitlements property list with Apple's keys.
///
/// Source: Apple, "Entitlements": `application-identifier` (`com.apple.application-identifier` on macOS),
/// `keychain-access-groups`, `com.apple.developer.associated-application-identifier`,
/// `com.apple.security.application-groups`.
package enum EntitlementsFile {
    /// Sufficient for any list of groups.
    ///
    /// A larger file is a mistake.
    private static let byteLimit = 1 << 20

    /// Reads the entitlements from a file.
    ///
    /// Throws `.missingEntitlement`, with the file and the entry, if it is unreadable or invalid: a program whose entitlements cannot be
    /// read has none.
    package static func entitlements(atPath path: String, defaultIdentifier: String) throws(KeychainFailure) -> Entitlements {
        guard let entitlements = try entitlementsIfPresent(atPath: path, defaultIdentifier: defaultIdentifier) else {
            throw failure("the entitlements file \(path) does not exist", path)
        }
        return entitlements
    }

    /// Reads the entitlements from a file; nil only if the file is proved absent.
    ///
    /// Throws the errors of `entitlements(atPath:defaultIdentifier:)`.
    static func entitlementsIfPresent(
        atPath path: String, defaultIdentifier: String, owner: TrustedFile.Owner = .any
    ) throws(KeychainFailure) -> Entitlements? {
        guard let contents = try contents(ofFile: path, "the entitlements file", owner: owner) else { return nil }
        return try entitlements(in: Data(contents), ofFile: path, defaultIdentifier: defaultIdentifier)
    }

    /// Reads the entitlements that root has registered for programs, and the paths of their files: none for a program with a group of its own.
    ///
    /// Throws `.missingEntitlement` if the file is absent, unreadable, or invalid, or if others than root can change it.
    package static func registration(
        atPath path: String, defaultIdentifier: String
    ) throws(KeychainFailure) -> (entitlements: Entitlements, programPaths: [String]) {
        guard let contents = try contents(ofFile: path, "the entitlements file", owner: .root) else {
            throw failure("the entitlements file \(path) does not exist", path)
        }
        let data = Data(contents)
        let entitlements = try entitlements(in: data, ofFile: path, defaultIdentifier: defaultIdentifier)
        let paths = try list(programsKey, in: entries(in: data, path), path)
        guard paths.allSatisfy({ $0.hasPrefix("/") }) else {
            throw failure("'\(programsKey)' in \(path) must be absolute paths", path, .invalidEntry(programsKey))
        }
        return (entitlements, paths)
    }

    /// Ours: Apple's entitlements are part of the program.
    private static let programsKey = "keychain-programs"

    /// Reads a file; nil only if it is proved absent.
    ///
    /// Throws `.missingEntitlement` if the file cannot be read, or belongs to another owner, and `.allocate` without memory or descriptors.
    static func contents(
        ofFile path: String, _ subject: String, owner: TrustedFile.Owner = .any
    ) throws(KeychainFailure) -> [UInt8]? {
        do throws(KeychainFailure) {
            return try TrustedFile.contents(path, byteLimit: byteLimit, owner: owner, subject: subject)
        } catch {
            throw error.status == .allocate ? error : failure(error.reason, path)
        }
    }

    /// Decodes the content of a file.
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

    /// The value of an entry.
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

    /// Decodes the entries.
    ///
    /// Binary property lists are refused, because Foundation does not decode damaged ones safely.
    ///
    /// `PropertyListDecoder` traps if a string extends beyond the end of the file. `PropertyListSerialization` builds an array once for each
    /// reference to it: 200 bytes in which each array contains the next one twice take forever.
    private static func entries(in data: Data, _ path: String) throws(KeychainFailure) -> [String: Entry] {
        guard !data.starts(with: Array("bplist".utf8)) else {
            throw failure("the entitlements file \(path) is a binary property list: save it as XML", path)
        }
        let text = try text(of: data, path)
        do {
            return try PropertyListDecoder().decode([String: Entry].self, from: Data(text.utf8))
        } catch DecodingError.typeMismatch {
            throw failure("the entitlements file \(path) is not a dictionary", path)
        } catch {
            throw unreadable(path)
        }
    }

    /// Sufficient for any list of groups.
    ///
    /// Foundation's decoder calls itself for each level of nesting, so a file with very many levels would exhaust the stack.
    private static let containerLimit = 200

    /// Returns the text of a file without its XML declaration.
    ///
    /// Refuses a file in another encoding than UTF-8, in which its containers could not be counted, and a file with too many of them.
    /// Counts all containers instead of nesting levels, because a closing tag inside a comment would lower the level.
    private static func text(of data: Data, _ path: String) throws(KeychainFailure) -> Substring {
        guard !data.contains(0), let whole = String(data: data, encoding: .utf8) else {
            throw failure("the entitlements file \(path) is not UTF-8 text", path)
        }
        var text = whole.drop { $0 == "\u{FEFF}" }
        // The declaration could name another encoding, in which the decoder would read the rest.
        if text.hasPrefix("<?xml"), let end = text.range(of: "?>") { text = text[end.upperBound...] }
        // Foundation reads white space or a comment alone as an empty dictionary, which would silently be another program's entitlements.
        guard text.first(where: { !$0.isWhitespace }) == "<", text.contains("<plist") else {
            throw failure("the entitlements file \(path) is not an XML property list", path)
        }
        guard openingCount(in: text) <= containerLimit else {
            throw failure("the entitlements file \(path) has more than \(containerLimit) arrays and dictionaries", path)
        }
        return text
    }

    /// Counts the characters that can begin a container: parentheses and braces, and tags that begin with the letter of one.
    private static func openingCount(in text: Substring) -> Int {
        var count = 0
        var previous: UInt8 = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "("), UInt8(ascii: "{"): count += 1
            case UInt8(ascii: "a"), UInt8(ascii: "d"), UInt8(ascii: "p"): if previous == UInt8(ascii: "<") { count += 1 }
            default: break
            }
            previous = byte
        }
        return count
    }

    private static func unreadable(_ path: String) -> KeychainFailure {
        failure("the entitlements file \(path) cannot be read as a property list", path)
    }

    private static func failure(
        _ reason: String, _ path: String, _ cause: KeychainFailure.Cause = .malformed
    ) -> KeychainFailure {
        KeychainFailure(.missingEntitlement, reason, path: path, subject: .entitlements, cause: cause)
    }

    private static func text(
        _ key: String, in entries: [String: Entry], _ path: String
    ) throws(KeychainFailure) -> String? {
        switch entries[key] {
        case nil: return nil
        case .text(let text): return text
        default: throw failure("'\(key)' in \(path) must be a string", path, .invalidEntry(key))
        }
    }

    /// Returns a list; a single string is a list with one element.
    private static func list(
        _ key: String, in entries: [String: Entry], _ path: String
    ) throws(KeychainFailure) -> [String] {
        switch entries[key] {
        case nil: return []
        case .text(let single): return [single]
        case .list(let list): return list
        default: throw failure("'\(key)' in \(path) must be an array of strings", path, .invalidEntry(key))
        }
    }
}
