// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)

/// A path below `/org/freedesktop/secrets`, as far as its form says what it names.
enum ObjectPath: Hashable {
    case service
    /// The path above collections, aliases, sessions, or prompts, which is no object itself.
    case folder(String)
    case collection(String)
    case alias(String)
    case item(collection: String, UInt64)
    case aliasedItem(alias: String, UInt64)
    case session(UInt64)
    case prompt(UInt64)

    static let root = "/org/freedesktop/secrets"
    /// The path that stands for no object.
    static let none = "/"
    static let folders = ["collection", "aliases", "session", "prompt"]

    /// Nil if no object has such a path.
    init?(_ path: String) {
        guard path.hasPrefix(Self.root) else { return nil }
        let parts = path.dropFirst(Self.root.count).split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        switch (parts.first, parts.count) {
        case (nil, 0) where path == Self.root: self = .service
        case (let folder?, 1) where Self.folders.contains(folder): self = .folder(folder)
        case ("collection"?, 2): self = .collection(parts[1])
        case ("aliases"?, 2): self = .alias(parts[1])
        case ("collection"?, 3):
            guard let number = Self.number(parts[2]) else { return nil }
            self = .item(collection: parts[1], number)
        case ("aliases"?, 3):
            guard let number = Self.number(parts[2]) else { return nil }
            self = .aliasedItem(alias: parts[1], number)
        case ("session"?, 2):
            guard let number = Self.number(parts[1].dropFirst()), parts[1].first == "s" else { return nil }
            self = .session(number)
        case ("prompt"?, 2):
            guard let number = Self.number(parts[1].dropFirst()), parts[1].first == "p" else { return nil }
            self = .prompt(number)
        default: return nil
        }
    }

    /// Only the form in which this process writes numbers: each object has one path.
    private static func number(_ text: some StringProtocol) -> UInt64? {
        guard let number = UInt64(text), "\(number)" == text else { return nil }
        return number
    }

    var text: String {
        switch self {
        case .service: Self.root
        case .folder(let name): "\(Self.root)/\(name)"
        case .collection(let name): "\(Self.root)/collection/\(name)"
        case .alias(let name): "\(Self.root)/aliases/\(name)"
        case .item(let collection, let number): "\(Self.root)/collection/\(collection)/\(number)"
        case .aliasedItem(let alias, let number): "\(Self.root)/aliases/\(alias)/\(number)"
        case .session(let number): "\(Self.root)/session/s\(number)"
        case .prompt(let number): "\(Self.root)/prompt/p\(number)"
        }
    }

    /// The largest name of a collection or an alias, without what makes it unique.
    static let largestNameByteCount = 64

    /// Returns a text as a part of a path: ASCII letters, digits, and underscores stay, every other byte becomes `_` and two digits.
    static func encode(_ text: String) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "_"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default: encoded += byte < 16 ? "_0\(String(byte, radix: 16))" : "_\(String(byte, radix: 16))"
            }
        }
        return encoded
    }
}
#endif
