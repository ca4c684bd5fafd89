// SPDX-License-Identifier: Apache-2.0

/// The name of a device, as a person reads it: one line of visible text.
///
/// A device that is not a member yet chooses its name, so a name that could move the cursor of a terminal, or that looks like none, is refused.
package struct DeviceName: Hashable, Sendable {
    package let text: String

    /// The limit of the UTF-8 form.
    package static let largestByteCount = 64

    /// Returns nil unless the text has 1 to 64 bytes in UTF-8, and consists of visible characters and of single spaces between them.
    package init?(_ text: String) {
        guard (1...Self.largestByteCount).contains(text.utf8.count), text.unicodeScalars.allSatisfy(Self.isPermitted) else { return nil }
        let words = text.unicodeScalars.split(separator: " ", omittingEmptySubsequences: false)
        guard words.allSatisfy({ !$0.isEmpty }) else { return nil }
        self.text = text
    }

    /// Parses the UTF-8 form.
    package init?(utf8 bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        // Invalid bytes are decoded as U+FFFD, which has others.
        guard text.utf8.elementsEqual(bytes) else { return nil }
        self.init(text)
    }

    package var utf8: [UInt8] { Array(text.utf8) }

    private static func isPermitted(_ scalar: Unicode.Scalar) -> Bool {
        if scalar == " " { return true }
        guard !scalar.properties.isDefaultIgnorableCodePoint else { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }
}

/// The number of eight digits that two people compare while a device joins.
package struct JoinNumber: Hashable, Sendable {
    package let value: UInt32

    package init(_ value: UInt32) { self.value = value }

    /// The digits in two groups of four: `0031 8827`.
    package var text: String {
        let digits = String(value)
        let padded = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
        return padded.prefix(4) + " " + padded.dropFirst(4)
    }
}
