// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// A message on a bus.
///
/// Source: D-Bus Specification 0.41, "Message Format".
struct DBusMessage: Sendable {
    enum Kind: UInt64 {
        case call = 1
        case reply = 2
        case error = 3
        case signal = 4
    }

    /// The fields of the header, by their numbers.
    enum Field: UInt64 {
        case path = 1
        case interface = 2
        case member = 3
        case errorName = 4
        case replySerial = 5
        case destination = 6
        case signature = 8

        fileprivate var signature: String {
            switch self {
            case .path: "o"
            case .signature: "g"
            case .replySerial: "u"
            case .interface, .member, .errorName, .destination: "s"
            }
        }
    }

    /// The bytes of a message that have its length.
    static let prefixByteCount = 16
    private static let protocolVersion: UInt64 = 1

    /// nil for a kind that the specification does not define.
    let kind: Kind?
    let serial: UInt32
    private(set) var fields: [Field: DBusValue]
    let body: [DBusValue]

    /// Creates a message whose body has values of these types.
    init(_ kind: Kind, serial: UInt32, _ fields: [Field: DBusValue], body: [DBusValue] = [], signature: String = "") {
        self.kind = kind
        self.serial = serial
        self.fields = fields
        self.body = body
        if !signature.isEmpty { self.fields[.signature] = .text(signature) }
    }

    func text(_ field: Field) -> String? { fields[field]?.text }

    var replySerial: UInt32? {
        if case .variant(_, .number(let number)) = fields[.replySerial] { UInt32(truncatingIfNeeded: number) } else { nil }
    }

    // MARK: Writing

    var encoded: [UInt8] {
        var content = DBusWriter()
        content.append(body, text(.signature) ?? "")
        let fields = fields.sorted { $0.key.rawValue < $1.key.rawValue }.map { field, value in
            DBusValue.list([.number(field.rawValue), .variant(signature: field.signature, value)])
        }
        var message = DBusWriter()
        message.append(UInt64(UInt8(ascii: "l")), byteCount: 1)
        message.append(kind?.rawValue ?? 0, byteCount: 1)
        message.append(0, byteCount: 1)
        message.append(Self.protocolVersion, byteCount: 1)
        message.append(UInt64(content.bytes.count), byteCount: 4)
        message.append(UInt64(serial), byteCount: 4)
        message.append([.list(fields)], "a(yv)")
        message.align(to: 8)
        return message.bytes + content.bytes
    }

    // MARK: Reading

    /// Returns the length of the message that begins with these bytes.
    static func byteCount(prefix: [UInt8]) throws(DBusReader.Malformed) -> Int {
        guard prefix.count == prefixByteCount, prefix[3] == protocolVersion else { throw DBusReader.Malformed() }
        var reader = DBusReader(prefix, from: 4, isBigEndian: try isBigEndian(prefix))
        guard case .number(let body) = try reader.values("u").first, case .number(let fields) = try reader.values("uu").last else {
            throw DBusReader.Malformed()
        }
        return prefixByteCount + (Int(fields) + 7) / 8 * 8 + Int(body)
    }

    /// Decodes a message from its first bytes and the rest.
    init(decoding prefix: [UInt8], _ rest: [UInt8]) throws(DBusReader.Malformed) {
        guard prefix.count == Self.prefixByteCount else { throw DBusReader.Malformed() }
        var bytes = prefix + rest
        defer { bytes.wipe() }
        let isBigEndian = try Self.isBigEndian(bytes)
        var reader = DBusReader(bytes, from: 8, isBigEndian: isBigEndian)
        let header = try reader.values("ua(yv)")
        guard case .number(let serial) = header[0] else { throw DBusReader.Malformed() }
        var fields: [Field: DBusValue] = [:]
        for entry in header[1].list ?? [] {
            guard case .list(let parts) = entry, case .number(let number) = parts[0] else { throw DBusReader.Malformed() }
            if let field = Field(rawValue: number) { fields[field] = parts[1] }
        }
        try reader.align(to: 8)
        kind = Kind(rawValue: UInt64(bytes[1]))
        self.serial = UInt32(truncatingIfNeeded: serial)
        self.fields = fields
        body = try reader.values(fields[.signature]?.text ?? "")
    }

    private static func isBigEndian(_ bytes: [UInt8]) throws(DBusReader.Malformed) -> Bool {
        switch bytes[0] {
        case UInt8(ascii: "l"): return false
        case UInt8(ascii: "B"): return true
        default: throw DBusReader.Malformed()
        }
    }
}
