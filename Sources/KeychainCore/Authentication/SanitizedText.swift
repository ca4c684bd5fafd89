// SPDX-License-Identifier: Apache-2.0

/// Makes text from a program safe to show beside the library's own text.
///
/// The result is one line, without characters that move the cursor or change the writing direction.
package enum SanitizedText {
    private static let ellipsis = "…"

    /// Returns one line of at most `byteLimit` bytes of UTF-8, in which a series of control characters, format characters, and line breaks
    /// is one space.
    package static func line(_ text: String, byteLimit: Int, keepsEnd: Bool = false) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse, .unassigned, .surrogate:
                if !shown.isEmpty, shown.last != " " { shown.append(" ") }
            default: shown.unicodeScalars.append(scalar)
            }
        }
        if shown.last == " " { shown.removeLast() }
        guard shown.utf8.count > byteLimit else { return shown }
        return keepsEnd
            ? ellipsis + String(cut(shown.reversed(), byteLimit: byteLimit - ellipsis.utf8.count).reversed())
            : String(cut(Array(shown), byteLimit: byteLimit - ellipsis.utf8.count)) + ellipsis
    }

    /// Returns one line without quotation marks, so that the text cannot end the quotation around it.
    package static func quotation(_ text: String, byteLimit: Int) -> String {
        let marks: Set<Unicode.Scalar> = ["\"", "“", "”", "„", "‟", "«", "»", "＂"]
        var plain = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { plain.append(marks.contains(scalar) ? "'" : scalar) }
        return line(String(plain), byteLimit: byteLimit)
    }

    /// The first characters that fit.
    private static func cut(_ characters: [Character], byteLimit: Int) -> [Character] {
        var byteCount = 0
        return Array(
            characters.prefix { character in
                byteCount += character.utf8.count
                return byteCount <= byteLimit
            })
    }
}
