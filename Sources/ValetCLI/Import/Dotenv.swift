// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The assignments of a `.env` file.
///
/// There is no standard. This reads what shells, Docker Compose, and the common libraries read in the same way, and refuses what they read
/// differently, such as `$NAME`, `a\b`, and `a#b`: a value that is silently another one is worse than an error.
///
/// | Form | Value |
/// |---|---|
/// | `NAME=text # comment` | `text`, without spaces around it |
/// | `NAME='text'` | the text as it is, also over several lines |
/// | `NAME="text"` | the text, also over several lines; `\n`, `\r`, `\t`, `\"`, `\\`, `\$`, and `` \` `` are escapes |
/// | `export NAME=...` | the same as without `export` |
struct Dotenv {
    struct Assignment {
        let name: String
        let value: String
        /// Whether the value is in single quotes, in which nothing has a special meaning.
        let isLiteral: Bool
        let line: Int

        /// The key that the value refers to, in the form `valet:KEY`; nil if the value is text.
        var referencedKey: String? {
            guard !isLiteral, Dotenv.isReference(value) else { return nil }
            return String(value.dropFirst(Dotenv.referencePrefix.count))
        }
    }

    private static let referencePrefix = "valet:"

    fileprivate static func isReference(_ value: String) -> Bool { value.utf8.starts(with: referencePrefix.utf8) }

    let assignments: [Assignment]

    /// Parses the text of `file`.
    ///
    /// An error names the line and what is wrong, and shows nothing of it.
    init(_ file: SourceFile) throws(CommandFailure) {
        let text = try file.text()
        var parser = DotenvParser(text)
        do throws(DotenvParser.Problem) {
            assignments = try parser.assignments()
        } catch {
            throw CommandFailure(.usage, "\(file.name), line \(error.line): \(error.reason); \(file.outcome)", advice: error.advice)
        }
    }
}

private struct DotenvParser {
    struct Problem: Error {
        let line: Int
        let reason: String
        let advice: String
    }

    private var rest: Substring.UnicodeScalarView
    private var line = 1

    init(_ text: String) {
        rest = Substring(text).unicodeScalars
    }

    mutating func assignments() throws(Problem) -> [Dotenv.Assignment] {
        var found: [Dotenv.Assignment] = []
        while true {
            skipSpaces(andLineBreaks: true)
            guard let next = rest.first else { return found }
            if next == "#" {
                skipLine()
            } else {
                found.append(try assignment())
            }
        }
    }

    private mutating func assignment() throws(Problem) -> Dotenv.Assignment {
        let start = line
        var name = word()
        if name == "export", let next = rest.first, next == " " || next == "\t" {
            skipSpaces()
            name = word()
        }
        skipSpaces()
        guard isName(name), rest.first == "=" else {
            throw problem("this is not NAME=VALUE", "Put a value of several lines in quotes, and # before a comment.")
        }
        rest.removeFirst()
        let (value, isLiteral) = try value()
        guard !value.unicodeScalars.contains("\0") else {
            throw Problem(line: start, reason: "the value contains a NUL byte", advice: "Check that it is the right file.")
        }
        return Dotenv.Assignment(name: name, value: value, isLiteral: isLiteral, line: start)
    }

    private mutating func value() throws(Problem) -> (String, isLiteral: Bool) {
        let isSpaceBefore = rest.first.map(isSpace) ?? false
        skipSpaces()
        switch rest.first {
        case "'": return (try quoted(by: "'"), true)
        case "\"": return (try quoted(by: "\""), false)
        case "`":
            throw problem("a value in backquotes is read differently by different programs", "Use single quotes.")
        default: return (try unquoted(isSpaceBefore: isSpaceBefore), false)
        }
    }

    /// Reads a value up to the end of the line or to a comment.
    private mutating func unquoted(isSpaceBefore: Bool) throws(Problem) -> String {
        var value = String.UnicodeScalarView()
        while let next = rest.first, !isLineBreak(next) {
            if next == "#" {
                if value.last.map(isSpace) ?? isSpaceBefore { break }
                throw problem(
                    "# without a space before it is read differently by different programs",
                    Self.advice(for: value, "Put the value in single quotes, or a space before the comment."))
            }
            // Shells remove these, and other programs do not.
            guard !"\\'\"".unicodeScalars.contains(next) else {
                throw problem(
                    "quotes within a value and a backslash outside of quotes are read differently by different programs",
                    Self.advice(
                        for: value,
                        "Put the value in single quotes, or, if it contains one, in double quotes with \\ before each \\ and \"."))
            }
            value.append(next)
            rest.removeFirst()
        }
        try requireNoReference(value, line)
        skipLine()
        while let last = value.last, isSpace(last) { value.removeLast() }
        return String(value)
    }

    private mutating func quoted(by quote: Unicode.Scalar) throws(Problem) -> String {
        let start = line
        rest.removeFirst()
        var value = String.UnicodeScalarView()
        /// The value with each escape replaced by a space, in which references are looked for.
        var unescaped = String.UnicodeScalarView()
        while let next = rest.first {
            rest.removeFirst()
            if next == quote {
                try requireEndOfLine()
                if quote == "\"" { try requireNoReference(unescaped, start) }
                return String(value)
            }
            if quote == "\"", next == "\\", rest.first.map(isLineBreak) ?? false {
                // Shells remove both.
                throw problem(
                    "a backslash at the end of a line is read differently by different programs",
                    "Put the value in single quotes, or write \\\\ for a backslash.")
            }
            if quote == "\"", next == "\\", let escaped = rest.first.flatMap(Self.escape) {
                rest.removeFirst()
                value.append(escaped)
                unescaped.append(" ")
                continue
            }
            if next == "\r", rest.first == "\n" { continue }
            if next == "\n" { line += 1 }
            value.append(next)
            unescaped.append(next)
        }
        throw Problem(line: start, reason: "the quotes are not closed", advice: "Add the closing \(quote == "'" ? "'" : "\"").")
    }

    private static func escape(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar {
        case "n": "\n"
        case "r": "\r"
        case "t": "\t"
        case "\"", "\\", "$", "`": scalar
        default: nil
        }
    }

    /// What a shell replaces behind a dollar sign.
    private static func isReplaced(_ next: Unicode.Scalar) -> Bool {
        next.isASCII && (next.properties.isAlphabetic || next.properties.numericType != nil || "_{(@*#?$!-".unicodeScalars.contains(next))
    }

    /// Throws if the value has a reference or a command, which some programs replace and some do not.
    private func requireNoReference(_ value: String.UnicodeScalarView, _ line: Int) throws(Problem) {
        for (index, scalar) in zip(value.indices, value) where scalar == "$" || scalar == "`" {
            let next = value.index(after: index)
            guard scalar == "`" || (next < value.endIndex && Self.isReplaced(value[next])) else { continue }
            let what = scalar == "`" ? "a backquote" : "$ before a name or a bracket"
            throw Problem(
                line: line, reason: "\(what) is read differently by different programs",
                advice: Self.advice(for: value, "Write the text itself, or put the value in single quotes if it is meant literally."))
        }
    }

    /// Returns the advice for a value that begins like this one: in single quotes a reference would be text.
    private static func advice(for value: String.UnicodeScalarView, _ advice: String) -> String {
        guard Dotenv.isReference(String(value)) else { return advice }
        return
            "Put a reference in double quotes, with \\ before each \", \\, $, and backquote, or the value in single quotes if it is no reference."
    }

    private mutating func requireEndOfLine() throws(Problem) {
        skipSpaces()
        guard let next = rest.first else { return }
        guard next == "#" || isLineBreak(next) else {
            throw problem("there is text after the closing quote", "Escape quotes in the value with \\, or use the other kind of quotes.")
        }
        skipLine()
    }

    private mutating func word() -> String {
        let end = rest.firstIndex { $0 == "=" || isSpace($0) || isLineBreak($0) } ?? rest.endIndex
        defer { rest = rest[end...] }
        return String(rest[..<end])
    }

    private func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in VariableName.isAllowed(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") }
    }

    private mutating func skipSpaces(andLineBreaks: Bool = false) {
        while let next = rest.first {
            if isSpace(next) {
                rest.removeFirst()
            } else if andLineBreaks, isLineBreak(next) {
                skipLineBreak()
            } else {
                return
            }
        }
    }

    private mutating func skipLine() {
        rest = rest[(rest.firstIndex(where: isLineBreak) ?? rest.endIndex)...]
        skipLineBreak()
    }

    /// Skips a line feed, a carriage return, or both in this order: each of them ends a line on some system.
    private mutating func skipLineBreak() {
        guard let next = rest.popFirst() else { return }
        if next == "\r", rest.first == "\n" { rest.removeFirst() }
        line += 1
    }

    private func problem(_ reason: String, _ advice: String) -> Problem { Problem(line: line, reason: reason, advice: advice) }
}

private func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
private func isLineBreak(_ scalar: Unicode.Scalar) -> Bool { scalar == "\n" || scalar == "\r" }

/// The name of an environment variable as every shell accepts it.
enum VariableName {
    static func isValid(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
        return text.utf8.allSatisfy(isAllowed)
    }

    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

// MARK: - As a source, and as an output

/// The values of a `.env` file, under the names of their variables.
///
/// References to secrets are left out.
struct DotenvSource: SecretSource {
    let file: SourceFile
    var name: String { file.name }

    func read() throws(CommandFailure) -> SourceContent {
        var content = SourceContent(removalAdvice: file.removalAdvice())
        for assignment in try Dotenv(file).assignments {
            guard assignment.referencedKey == nil else {
                // The key is not shown: it may be a secret that only looks like a reference.
                content.omissions.append(
                    .init(note: "line \(assignment.line): \(assignment.name) is a reference (valet:KEY) and has no secret"))
                continue
            }
            try content.add(FoundSecret(key: assignment.name, value: Data(assignment.value.utf8), place: "line \(assignment.line)"))
        }
        return content
    }
}

extension Dotenv {
    /// A value that cannot be written to a `.env` file.
    enum Unwritable: Error {
        case name, nulByte
        /// The value would be read as a reference.
        case reference
    }

    /// Returns an assignment that shells, Docker Compose, and the common libraries read, in single quotes if possible.
    static func line(_ name: String, _ value: String) throws(Unwritable) -> String {
        guard VariableName.isValid(name) else { throw .name }
        guard !value.unicodeScalars.contains("\0") else { throw .nulByte }
        if !value.utf8.isEmpty, !isReference(value), value.utf8.allSatisfy({ VariableName.isAllowed($0) || "./:@%+,-".utf8.contains($0) }) {
            return "\(name)=\(value)\n"
        }
        // A carriage return in quotes may be read as a part of the line break.
        if !value.unicodeScalars.contains(where: { $0 == "'" || $0 == "\r" }) { return "\(name)='\(value)'\n" }
        // Only single quotes make it text.
        guard !isReference(value) else { throw .reference }
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\", "\"", "$", "`": escaped += "\\\(scalar)"
            case "\r": escaped += "\\r"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return "\(name)=\"\(escaped)\"\n"
    }
}
