// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import FoundationEssentials
internal import KeychainCore

/// An attribute of an item: a name and a value that its program has chosen.
struct ItemAttribute: Sendable, Equatable {
    let name: String
    let value: String

    /// The attribute with the name of the schema that describes the others.
    static let schema = "xdg:schema"
    /// The schema of an item that has none.
    static let genericSchema = "org.freedesktop.Secret.Generic"

    /// Compares bytes: to the programs on a bus, texts that Unicode takes for equivalent are different.
    static func == (left: ItemAttribute, right: ItemAttribute) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
    }
}

/// The attributes of an item or of a search, each name once, sorted by the bytes of the names.
struct ItemLookup: Sendable, Equatable {
    private(set) var attributes: [ItemAttribute]

    /// Of several attributes with one name, the last one counts.
    init(_ pairs: [(name: String, value: String)]) {
        // One sort, because a program can send a million of them.
        let sorted = pairs.enumerated().sorted { left, right in
            if left.element.name.hasSameBytes(as: right.element.name) { return left.offset < right.offset }
            return left.element.name.utf8.lexicographicallyPrecedes(right.element.name.utf8)
        }
        attributes = []
        attributes.reserveCapacity(pairs.count)
        for (_, pair) in sorted {
            if let last = attributes.last, last.name.hasSameBytes(as: pair.name) { attributes.removeLast() }
            attributes.append(ItemAttribute(name: pair.name, value: pair.value))
        }
    }

    subscript(name: String) -> String? {
        get { attributes.first { $0.name.hasSameBytes(as: name) }?.value }
        set {
            attributes.removeAll { $0.name.hasSameBytes(as: name) }
            guard let newValue else { return }
            let position = attributes.firstIndex { !$0.name.utf8.lexicographicallyPrecedes(name.utf8) } ?? attributes.endIndex
            attributes.insert(ItemAttribute(name: name, value: newValue), at: position)
        }
    }
}

/// What programs may know about an item while the keychain is locked.
struct ItemDescription: Sendable, Equatable {
    /// The number in the path of the item, which is never used again.
    let number: UInt64
    var label: String
    var lookup: ItemLookup
    /// Set when the item is stored; one of every program gets the owner that replaces it.
    let owner: ItemOwner

    private static let version: UInt8 = 2

    /// version (1 byte) ‖ number (8) ‖ owner ‖ label ‖ for each attribute: name ‖ value; texts with a byte count (4, little-endian).
    var encoded: Data {
        var bytes = [Self.version]
        bytes.append(littleEndian: number)
        bytes.append(lengthPrefixed: Array(owner.text.utf8))
        bytes.append(lengthPrefixed: Array(label.utf8))
        for attribute in lookup.attributes {
            bytes.append(lengthPrefixed: Array(attribute.name.utf8))
            bytes.append(lengthPrefixed: Array(attribute.value.utf8))
        }
        return Data(bytes)
    }

    init(number: UInt64, label: String, lookup: ItemLookup, owner: ItemOwner = .everyProgram) {
        self.number = number
        self.label = label
        self.lookup = lookup
        self.owner = owner
    }

    /// Nil unless the bytes are an encoding.
    init?(encoded: Data) {
        var reader = ByteReader(encoded)
        guard reader.readByte() == Self.version, let number = reader.readUInt64(), let owner = reader.readText(),
            let label = reader.readText()
        else { return nil }
        var pairs: [(String, String)] = []
        while !reader.isAtEnd {
            guard let name = reader.readText(), let value = reader.readText() else { return nil }
            pairs.append((name, value))
        }
        self.init(number: number, label: label, lookup: ItemLookup(pairs), owner: ItemOwner(owner))
    }
}

extension ByteReader {
    fileprivate mutating func readText() -> String? { readLengthPrefixed().flatMap { String(validating: $0, as: UTF8.self) } }
}

/// The secret of an item.
struct ItemSecret: Sendable, Equatable {
    var bytes: Data
    /// As its program has stated it.
    var contentType: String
}

/// When an item or a collection was created and last modified, in seconds since 1970.
struct ItemDates: Sendable, Equatable {
    var created: UInt64 = 0
    var modified: UInt64 = 0
}
#endif
