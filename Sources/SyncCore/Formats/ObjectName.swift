// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The name of an object below the folder of its circle.
///
/// Names consist of lower-case hexadecimal digits, so that they survive every file system. Each object has one writer, and its content
/// never changes.
package enum ObjectName: Hashable, Sendable {
    case statement(StatementHash)
    /// The device that writes the log comes first, so that storage can limit who creates what.
    case batch(device: DeviceID, origin: Origin)
    case checkpoint(CheckpointHash)
    case piece(ObjectHash)
    case joinMessage(InvitationID, ObjectHash)

    /// The folders that can be listed.
    package enum Folder: String, CaseIterable, Sendable {
        case statements = "m"
        case batches = "b"
        case checkpoints = "c"
        case pieces = "p"
        case joinMessages = "j"
    }

    package var folder: Folder {
        switch self {
        case .statement: .statements
        case .batch: .batches
        case .checkpoint: .checkpoints
        case .piece: .pieces
        case .joinMessage: .joinMessages
        }
    }

    package var text: String {
        switch self {
        case .statement(let hash): "m/" + hash.hexadecimal
        case .batch(let device, let origin):
            "b/" + device.hexadecimal + "/" + origin.log.hexadecimal + "/" + Self.hexadecimal(origin.number) + "-"
                + origin.hash.hexadecimal
        case .checkpoint(let hash): "c/" + hash.hexadecimal
        case .piece(let hash): "p/" + hash.hexadecimal
        case .joinMessage(let invitation, let hash): "j/" + invitation.hexadecimal + "/" + hash.hexadecimal
        }
    }

    /// Parses `text`; nil for a foreign name.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.largestByteCount else { return nil }
        let characters = Array(text.utf8)
        // Digits are lower-case in names: two names of one object would be two objects. A listing may have 10^6 names, so the parts are at fixed places.
        for character in characters where character >= UInt8(ascii: "A") && character <= UInt8(ascii: "Z") { return nil }
        guard characters.count > 2, characters[1] == Self.slash else { return nil }
        let rest = characters[2...]
        switch characters[0] {
        case UInt8(ascii: "m"):
            guard let hash = ObjectHash(hexadecimalDigits: rest) else { return nil }
            self = .statement(hash)
        case UInt8(ascii: "c"):
            guard let hash = ObjectHash(hexadecimalDigits: rest) else { return nil }
            self = .checkpoint(hash)
        case UInt8(ascii: "p"):
            guard let hash = ObjectHash(hexadecimalDigits: rest) else { return nil }
            self = .piece(hash)
        case UInt8(ascii: "j"):
            guard rest.count == 97, rest[34] == Self.slash, let invitation = Identifier128(hexadecimalDigits: rest[2..<34]),
                let hash = ObjectHash(hexadecimalDigits: rest[35...])
            else { return nil }
            self = .joinMessage(InvitationID(invitation), hash)
        case UInt8(ascii: "b"):
            guard rest.count == 115, rest[34] == Self.slash, rest[67] == Self.slash,
                let device = Identifier128(hexadecimalDigits: rest[2..<34]), let log = Identifier128(hexadecimalDigits: rest[35..<67]),
                let (number, hash) = Self.numberAndHash(rest[68...])
            else { return nil }
            self = .batch(device: DeviceID(device), origin: Origin(log: LogID(log), number: number, hash: hash))
        default: return nil
        }
    }

    private static let slash = UInt8(ascii: "/")

    /// No name is longer: three identifiers, a number, and separators.
    private static let largestByteCount = 160

    private static func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static func numberAndHash(_ part: ArraySlice<UInt8>) -> (UInt64, Identifier128)? {
        guard part.count == 49, part.dropFirst(16).first == UInt8(ascii: "-"), let hash = Identifier128(hexadecimalDigits: part.suffix(32))
        else { return nil }
        var number: UInt64 = 0
        for character in part.prefix(16) {
            guard let digit = Identifier128.digit(character) else { return nil }
            number = number << 4 | UInt64(digit)
        }
        return number > 0 ? (number, hash) : nil
    }
}
