// SPDX-License-Identifier: Apache-2.0

/// Makes text from somewhere else fit to be shown beside ours.
///
/// It stays on its line, moves no cursor, changes no direction of writing and ends where it is said to end.
enum HarmlessText {
    private static let ellipsis = "…"

    /// One line of at most so many bytes of UTF-8: control and format characters and line breaks are spaces, a series of them is one.
    static func line(_ text: String, byteLimit: Int, keepsEnd: Bool = false) -> String {
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

    /// The same, for between quotation marks: it has none of its own, so nobody can end the quotation but us.
    static func quotation(_ text: String, byteLimit: Int) -> String {
        let marks: Set<Unicode.Scalar> = ["\"", "“", "”", "„", "‟", "«", "»", "＂"]
        var plain = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { plain.append(marks.contains(scalar) ? "'" : scalar) }
        return line(String(plain), byteLimit: byteLimit)
    }

    /// Whole characters, as long as they fit.
    private static func cut(_ characters: [Character], byteLimit: Int) -> [Character] {
        var byteCount = 0
        return Array(
            characters.prefix { character in
                byteCount += character.utf8.count
                return byteCount <= byteLimit
            })
    }
}
