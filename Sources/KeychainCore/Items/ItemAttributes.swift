// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The attributes of an item or of a search, ordered by number.
///
/// A sorted array rather than a dictionary: there are about ten, and the encoding needs this order.
package struct ItemAttributes: Hashable, Sendable {
    package struct Entry: Hashable, Sendable {
        package let attribute: Attribute
        package let value: AttributeValue
    }

    package private(set) var entries: [Entry] = []

    package init() {}

    package init(_ values: KeyValuePairs<Attribute, AttributeValue>) {
        for (attribute, value) in values { self[attribute] = value }
    }

    /// Creates attributes from entries in strictly ascending order.
    init(ascending entries: [Entry]) {
        self.entries = entries
    }

    package var isEmpty: Bool { entries.isEmpty }

    /// The total size of the values.
    var byteCount: Int { entries.reduce(0) { $0 + $1.value.byteCount } }

    package subscript(attribute: Attribute) -> AttributeValue? {
        get { entries.first { $0.attribute == attribute }?.value }
        set {
            let position = entries.firstIndex { $0.attribute.rawValue >= attribute.rawValue } ?? entries.endIndex
            let exists = position < entries.endIndex && entries[position].attribute == attribute
            switch (exists, newValue) {
            case (true, let value?): entries[position] = Entry(attribute: attribute, value: value)
            case (true, nil): entries.remove(at: position)
            case (false, let value?): entries.insert(Entry(attribute: attribute, value: value), at: position)
            case (false, nil): break
            }
        }
    }

    package func text(_ attribute: Attribute) -> String? {
        if case .string(let text)? = self[attribute] { text } else { nil }
    }

    package func flag(_ attribute: Attribute) -> Bool? {
        if case .number(let number)? = self[attribute] { number != 0 } else { nil }
    }

    package func seconds(_ attribute: Attribute) -> Double? {
        if case .date(let seconds)? = self[attribute] { seconds } else { nil }
    }

    /// Returns these attributes with the values of `changes`.
    package func updated(with changes: ItemAttributes) -> ItemAttributes {
        var result = self
        for entry in changes.entries { result[entry.attribute] = entry.value }
        return result
    }
}

/// The attributes of an item that a caller wants.
///
/// All attributes are opened and parsed, so that damage is detected; only the wanted ones are kept. A listing of 100,000 keys then
/// keeps one attribute of each item instead of a dozen.
package enum AttributeSelection: Sendable, Equatable {
    case all
    case none
    case only(Attribute)

    func contains(_ attribute: Attribute) -> Bool {
        switch self {
        case .all: true
        case .none: false
        case .only(let wanted): attribute == wanted
        }
    }
}

/// The canonical encoding of attributes: the plaintext of a row's attribute part.
///
///     version (1 byte) ‖ for each attribute in ascending order:
///         number (1) ‖ type (1) ‖ byte count (4, little-endian) ‖ bytes
extension ItemAttributes {
    private static let encodingVersion: UInt8 = 1

    private enum TypeCode: UInt8 {
        case string = 1
        case data = 2
        case number = 3
        case date = 4
    }

    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        bytes.append(Self.encodingVersion)
        for entry in entries {
            bytes.append(entry.attribute.rawValue)
            switch entry.value {
            case .string(var text):
                bytes.append(TypeCode.string.rawValue)
                text.withUTF8 { utf8 in
                    bytes.append(littleEndian: UInt32(utf8.count))
                    unsafe bytes.append(contentsOf: utf8)
                }
            case .data(let data):
                bytes.append(TypeCode.data.rawValue)
                bytes.append(littleEndian: UInt32(data.count))
                bytes.append(contentsOf: data)
            case .number(let number):
                bytes.append(TypeCode.number.rawValue)
                bytes.append(littleEndian: UInt32(8))
                bytes.append(littleEndian: UInt64(bitPattern: number))
            case .date(let seconds):
                bytes.append(TypeCode.date.rawValue)
                bytes.append(littleEndian: UInt32(8))
                bytes.append(littleEndian: seconds.bitPattern)
            }
        }
        return bytes
    }

    /// Parses `encoded`; nil unless it is exactly the canonical encoding.
    package init?(encoded: some Collection<UInt8>) {
        self.init(encoded: Array(encoded).span)
    }

    /// Parses `encoded` in place, without a copy, because every read does this.
    ///
    /// Unwanted attributes are checked but not kept.
    package init?(encoded: Span<UInt8>, keeping wanted: AttributeSelection = .all) {
        guard encoded.count > 0, encoded[0] == Self.encodingVersion else { return nil }
        var entries: [Entry] = []
        if case .all = wanted { entries.reserveCapacity(16) }
        var position = 1
        var last: UInt8 = 0
        while position < encoded.count {
            let valueStart = position + 6
            guard valueStart <= encoded.count, encoded[position] > last, let attribute = Attribute(rawValue: encoded[position]),
                let type = TypeCode(rawValue: encoded[position + 1])
            else { return nil }
            let valueByteCount = Int(Self.number(in: encoded.extracting(position + 2..<valueStart)))
            guard valueByteCount <= encoded.count - valueStart else { return nil }
            last = encoded[position]
            position = valueStart + valueByteCount
            let bytes = encoded.extracting(valueStart..<position)
            guard wanted.contains(attribute) else {
                guard Self.isValue(type, bytes) else { return nil }
                continue
            }
            guard let value = Self.value(type, in: bytes) else { return nil }
            entries.append(Entry(attribute: attribute, value: value))
        }
        self.init(ascending: entries)
    }

    private static func isValue(_ type: TypeCode, _ bytes: Span<UInt8>) -> Bool {
        switch type {
        case .string: (try? UTF8Span(validating: bytes)) != nil
        case .data: true
        case .number, .date: bytes.count == 8
        }
    }

    private static func value(_ type: TypeCode, in bytes: Span<UInt8>) -> AttributeValue? {
        switch type {
        case .string:
            guard let text = try? UTF8Span(validating: bytes) else { return nil }
            return .string(String(copying: text))
        case .data:
            // The bytes are copied within the closure.
            return .data(unsafe bytes.withUnsafeBytes { unsafe Data($0) })
        case .number:
            return bytes.count == 8 ? .number(Int64(bitPattern: number(in: bytes))) : nil
        case .date:
            return bytes.count == 8 ? .date(Double(bitPattern: number(in: bytes))) : nil
        }
    }

    /// Returns the little-endian number of at most eight bytes.
    private static func number(in bytes: Span<UInt8>) -> UInt64 {
        var number: UInt64 = 0
        for index in bytes.indices { number |= UInt64(bytes[index]) << UInt64(8 * index) }
        return number
    }
}
