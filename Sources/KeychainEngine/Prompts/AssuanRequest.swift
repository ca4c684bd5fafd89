// SPDX-License-Identifier: Apache-2.0

/// One line that is sent to a pinentry program.
///
/// Source: the libassuan manual, "Client requests": at most 1000 bytes with the line feed; `%` and what would end the line are
/// written as `%` and two digits.
package enum AssuanRequest {
    package static let lineByteLimit = 1_000
    private static let ellipsis = Array("…".utf8)

    /// The line, with its end; a text that is too long ends at a whole character, with an ellipsis.
    package static func line(_ command: String, _ text: String? = nil) -> [UInt8] {
        guard let text else { return Array(command.utf8) + [UInt8(ascii: "\n")] }
        var line = Array(command.utf8) + [UInt8(ascii: " ")]
        var characters = text[...]
        // Where an ellipsis would still fit behind it.
        var cut = line.count
        while let character = characters.popFirst() {
            line += escaped(character)
            if line.count + ellipsis.count < lineByteLimit { cut = line.count }
            guard line.count < lineByteLimit else {
                line.removeSubrange(cut...)
                return line + ellipsis + [UInt8(ascii: "\n")]
            }
        }
        return line + [UInt8(ascii: "\n")]
    }

    private static func escaped(_ character: Character) -> [UInt8] {
        character.utf8.flatMap { byte in
            byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") ? [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 0xF)] : [byte]
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
