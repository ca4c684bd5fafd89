// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

/// The canonical form of attributes, the plaintext of a row's attribute part. One set of attributes has one encoding.
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

    /// Parses `encoded`; nil for anything that is not exactly the canonical form.
    package init?(encoded: some Collection<UInt8>) {
        var reader = ByteReader(encoded)
        guard reader.readByte() == Self.encodingVersion else { return nil }
        var last: UInt8 = 0
        self.init()
        while !reader.isAtEnd {
            guard let number = reader.readByte(), number > last, let attribute = Attribute(rawValue: number),
                let type = reader.readByte().flatMap(TypeCode.init(rawValue:)), let count = reader.readUInt32()
            else { return nil }
            last = number
            guard let value = Self.readValue(type, byteCount: Int(count), from: &reader) else { return nil }
            self[attribute] = value
        }
    }

    private static func readValue(_ type: TypeCode, byteCount: Int, from reader: inout ByteReader) -> AttributeValue? {
        switch type {
        case .string:
            guard let bytes = reader.readBytes(byteCount), let text = String(validating: bytes, as: UTF8.self) else { return nil }
            return .string(text)
        case .data:
            return reader.readBytes(byteCount).map { .data(Data($0)) }
        case .number:
            guard byteCount == 8, let bits = reader.readUInt64() else { return nil }
            return .number(Int64(bitPattern: bits))
        case .date:
            guard byteCount == 8, let bits = reader.readUInt64() else { return nil }
            return .date(Double(bitPattern: bits))
        }
    }
}
