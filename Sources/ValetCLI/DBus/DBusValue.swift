// SPDX-License-Identifier: Apache-2.0

// A client of D-Bus, for the services of a desktop. The programs `busctl` and `gdbus` cannot take its place: each of their calls is a
// connection of its own, and a Secret Service gives secrets only to the connection that has opened a session.
//
// Source: D-Bus Specification 0.41, "Type System" and "Marshaling (Wire Format)".

/// A value in a message.
indirect enum DBusValue: Equatable, Sendable {
    /// A number or a Boolean value, as its bits.
    case number(UInt64)
    /// A string, an object path, or a signature.
    case text(String)
    /// An array of bytes.
    case bytes([UInt8])
    /// An array, a structure, or an entry of a dictionary.
    case list([DBusValue])
    case variant(signature: String, DBusValue)

    private var content: DBusValue { if case .variant(_, let value) = self { value.content } else { self } }

    var boolean: Bool? { if case .number(let bits) = content { bits != 0 } else { nil } }
    var text: String? { if case .text(let text) = content { text } else { nil } }
    var bytes: [UInt8]? { if case .bytes(let bytes) = content { bytes } else { nil } }
    var list: [DBusValue]? { if case .list(let values) = content { values } else { nil } }

    /// The texts of an array; nil if one of its elements is not text.
    var texts: [String]? {
        guard let list else { return nil }
        let texts = list.compactMap(\.text)
        return texts.count == list.count ? texts : nil
    }

    /// The value of a dictionary's entry.
    subscript(key: String) -> DBusValue? {
        list?.first { $0.list?.count == 2 && $0.list?.first?.text == key }?.list?.last
    }
}

/// The type of a value.
indirect enum DBusType {
    case fixed(byteCount: Int)
    case text
    case signature
    case bytes
    case array(DBusType)
    case structure([DBusType])
    case variant

    /// The largest depth of types in each other.
    static let depthLimit = 64

    var alignment: Int {
        switch self {
        case .fixed(let byteCount): byteCount
        case .text, .bytes, .array: 4
        case .signature, .variant: 1
        case .structure: 8
        }
    }

    /// Parses a signature; nil if it is invalid.
    static func types(_ signature: String) -> [DBusType]? {
        var codes = Array(signature.utf8)[...]
        var types: [DBusType] = []
        while !codes.isEmpty {
            guard let type = type(&codes, depth: 0) else { return nil }
            types.append(type)
        }
        return types
    }

    private static func type(_ codes: inout ArraySlice<UInt8>, depth: Int) -> DBusType? {
        guard depth < depthLimit, let code = codes.popFirst() else { return nil }
        switch Character(Unicode.Scalar(code)) {
        case "y": return .fixed(byteCount: 1)
        case "n", "q": return .fixed(byteCount: 2)
        case "b", "i", "u", "h": return .fixed(byteCount: 4)
        case "x", "t", "d": return .fixed(byteCount: 8)
        case "s", "o": return .text
        case "g": return .signature
        case "v": return .variant
        case "a" where codes.first == UInt8(ascii: "y"):
            codes.removeFirst()
            return .bytes
        case "a": return type(&codes, depth: depth + 1).map(DBusType.array)
        case "(", "{":
            let end = code == UInt8(ascii: "(") ? UInt8(ascii: ")") : UInt8(ascii: "}")
            var members: [DBusType] = []
            while codes.first != end {
                guard let member = type(&codes, depth: depth + 1) else { return nil }
                members.append(member)
            }
            codes.removeFirst()
            // Each element of an array must take room, so that its end is reached.
            return members.isEmpty ? nil : .structure(members)
        default: return nil
        }
    }
}

/// Writes values in little-endian order.
struct DBusWriter {
    private(set) var bytes: [UInt8] = []

    mutating func align(to alignment: Int) {
        while !bytes.count.isMultiple(of: alignment) { bytes.append(0) }
    }

    mutating func append(_ number: UInt64, byteCount: Int) {
        align(to: byteCount)
        for index in 0..<byteCount { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
    }

    /// Writes the values, whose types must be those of the signature.
    mutating func append(_ values: [DBusValue], _ signature: String) {
        for (value, type) in zip(values, DBusType.types(signature) ?? []) { append(value, type) }
    }

    private mutating func append(_ value: DBusValue, _ type: DBusType) {
        switch (type, value) {
        case (.fixed(let byteCount), .number(let number)): append(number, byteCount: byteCount)
        case (.text, .text(let text)):
            append(UInt64(text.utf8.count), byteCount: 4)
            bytes += Array(text.utf8) + [0]
        case (.signature, .text(let text)): bytes += [UInt8(truncatingIfNeeded: text.utf8.count)] + Array(text.utf8) + [0]
        case (.bytes, .bytes(let content)):
            append(UInt64(content.count), byteCount: 4)
            bytes += content
        case (.array(let element), .list(let values)):
            append(0, byteCount: 4)
            let lengthEnd = bytes.count
            align(to: element.alignment)
            let start = bytes.count
            for value in values { append(value, element) }
            var length = DBusWriter()
            length.append(UInt64(bytes.count - start), byteCount: 4)
            bytes.replaceSubrange(lengthEnd - 4..<lengthEnd, with: length.bytes)
        case (.structure(let members), .list(let values)):
            align(to: 8)
            for (value, member) in zip(values, members) { append(value, member) }
        case (.variant, .variant(let signature, let value)):
            append(.text(signature), .signature)
            append([value], signature)
        default: break
        }
    }
}

/// Reads values.
///
/// Every count is compared with the bytes that are there, because any program can answer on a bus.
struct DBusReader {
    struct Malformed: Error {}

    private let bytes: [UInt8]
    private let isBigEndian: Bool
    private var position: Int

    init(_ bytes: [UInt8], from position: Int, isBigEndian: Bool) {
        self.bytes = bytes
        self.position = position
        self.isBigEndian = isBigEndian
    }

    mutating func values(_ signature: String, depth: Int = 0) throws(Malformed) -> [DBusValue] {
        guard let types = DBusType.types(signature) else { throw Malformed() }
        var values: [DBusValue] = []
        for type in types { values.append(try value(type, depth)) }
        return values
    }

    mutating func align(to alignment: Int) throws(Malformed) {
        position += (alignment - position % alignment) % alignment
        guard position <= bytes.count else { throw Malformed() }
    }

    private mutating func value(_ type: DBusType, _ depth: Int) throws(Malformed) -> DBusValue {
        guard depth < DBusType.depthLimit else { throw Malformed() }
        switch type {
        case .fixed(let byteCount): return .number(try number(byteCount))
        case .text: return .text(try text(byteCount: try count(4)))
        case .signature: return .text(try text(byteCount: try count(1)))
        case .bytes: return .bytes(Array(try take(try count(4))))
        case .array(let element):
            let byteCount = try count(4)
            try align(to: element.alignment)
            guard byteCount <= bytes.count - position else { throw Malformed() }
            let end = position + byteCount
            var values: [DBusValue] = []
            while position < end { values.append(try value(element, depth + 1)) }
            guard position == end else { throw Malformed() }
            return .list(values)
        case .structure(let members):
            try align(to: 8)
            var values: [DBusValue] = []
            for member in members { values.append(try value(member, depth + 1)) }
            return .list(values)
        case .variant:
            let signature = try text(byteCount: try count(1))
            let values = try values(signature, depth: depth + 1)
            guard values.count == 1 else { throw Malformed() }
            return .variant(signature: signature, values[0])
        }
    }

    private mutating func number(_ byteCount: Int) throws(Malformed) -> UInt64 {
        try align(to: byteCount)
        let taken = try take(byteCount)
        return (isBigEndian ? Array(taken) : taken.reversed()).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func count(_ byteCount: Int) throws(Malformed) -> Int { Int(try number(byteCount)) }

    private mutating func text(byteCount: Int) throws(Malformed) -> String {
        guard let text = String(validating: try take(byteCount), as: UTF8.self), try take(1) == [0] else { throw Malformed() }
        return text
    }

    private mutating func take(_ byteCount: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard byteCount <= bytes.count - position else { throw Malformed() }
        defer { position += byteCount }
        return bytes[position..<position + byteCount]
    }
}
