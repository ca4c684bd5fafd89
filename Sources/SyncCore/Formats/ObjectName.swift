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
        // Digits are lower-case in names: two names of one object would be two objects.
        guard !characters.contains(where: { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }) else { return nil }
        let parts = characters.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].count == 1 else { return nil }
        switch (parts[0].first, parts.count) {
        case (UInt8(ascii: "m"), 2):
            guard let hash = ObjectHash(hexadecimalDigits: parts[1]) else { return nil }
            self = .statement(hash)
        case (UInt8(ascii: "c"), 2):
            guard let hash = ObjectHash(hexadecimalDigits: parts[1]) else { return nil }
            self = .checkpoint(hash)
        case (UInt8(ascii: "p"), 2):
            guard let hash = ObjectHash(hexadecimalDigits: parts[1]) else { return nil }
            self = .piece(hash)
        case (UInt8(ascii: "j"), 3):
            guard let invitation = Identifier128(hexadecimalDigits: parts[1]), let hash = ObjectHash(hexadecimalDigits: parts[2])
            else { return nil }
            self = .joinMessage(InvitationID(invitation), hash)
        case (UInt8(ascii: "b"), 4):
            guard let device = Identifier128(hexadecimalDigits: parts[1]), let log = Identifier128(hexadecimalDigits: parts[2]),
                let (number, hash) = Self.numberAndHash(parts[3])
            else { return nil }
            self = .batch(device: DeviceID(device), origin: Origin(log: LogID(log), number: number, hash: hash))
        default: return nil
        }
    }

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
