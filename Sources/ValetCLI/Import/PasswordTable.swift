// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The passwords in a CSV file that a password manager or a browser has exported, under `NAME/USER`, or `NAME` without a user.
///
/// The format is recognized by the names of its columns. In KeePassXC's, the names of groups below the root come first; in Firefox's, which
/// has no names, the name is the address without its scheme and path.
struct PasswordTableSource: SecretSource {
    let file: SourceFile
    var name: String { file.name }

    func read() throws(CommandFailure) -> SourceContent {
        var rows = CSVReader(try file.text())
        guard let header = try next(&rows) else {
            throw CommandFailure(
                .usage, "\(file.name) is empty: it lacks even the line of column names; nothing was stored",
                advice: "Export the passwords again, and check that the export has finished.")
        }
        guard let format = Format(header: header.fields) else {
            throw CommandFailure(
                .usage, "the columns of \(file.name) are not those of a known export; nothing was stored",
                advice: "Export CSV from Bitwarden, 1Password, KeePassXC, Firefox, or Chrome, with the line of column names.")
        }
        var content = SourceContent(removalAdvice: file.removalAdvice())
        var unusedCounts: [String: Int] = [:]
        while let row = try next(&rows) {
            guard row.fields.count == header.fields.count else {
                throw failure(row.line, "there are \(row.fields.count) columns and not \(header.fields.count)")
            }
            let place = "line \(row.line)"
            let name = format.name(row.fields)
            for column in format.unused where !row.fields[column].isEmpty { unusedCounts[header.fields[column], default: 0] += 1 }
            guard !name.isEmpty else {
                // Another export would have it too.
                content.omissions.append(
                    .init(
                        note: "\(place): the entry has no name; give it one in the password manager",
                        isEmpty: row.fields[format.password].isEmpty))
                continue
            }
            let user = row.fields[format.user]
            let key = user.isEmpty ? name : "\(name)/\(user)"
            try content.add(FoundSecret(key: key, value: Data(row.fields[format.password].utf8), place: place))
        }
        for (column, count) in unusedCounts.sorted(by: { $0.key < $1.key }) {
            content.omissions.append(.init(note: "column \(column): in \(count == 1 ? "1 entry" : "\(count) entries")"))
        }
        return content
    }

    private func next(_ rows: inout CSVReader) throws(CommandFailure) -> CSVReader.Row? {
        do throws(CSVReader.Problem) {
            return try rows.next()
        } catch {
            throw failure(error.line, error.reason)
        }
    }

    private func failure(_ line: Int, _ reason: String) -> CommandFailure {
        CommandFailure(
            .usage, "\(file.name), line \(line): \(reason); nothing was stored",
            advice: "Export the file again, and do not edit it by hand.")
    }

    /// Where a known export has what is stored.
    private struct Format {
        let user: Int
        let password: Int
        /// The columns that are not imported, and may contain secrets.
        let unused: [Int]
        private let name: Int?
        private let group: Int?
        private let address: Int?

        /// The columns of a name, a user, and a password in each format, in lowercase.
        private static let known: [(name: String?, user: String, password: String, address: String, group: String?)] = [
            ("name", "login_username", "login_password", "login_uri", nil),  // Bitwarden
            ("title", "username", "password", "url", "group"),  // KeePassXC
            ("title", "username", "password", "url", nil),  // 1Password
            ("name", "username", "password", "url", nil),  // Chrome
            (nil, "username", "password", "url", nil),  // Firefox
        ]
        /// Columns that describe an entry and contain no secret.
        ///
        /// Any other column that is not imported is reported, because an export may have columns of its own.
        private static let descriptive: Set<String> = [
            "folder", "favorite", "type", "reprompt", "archived", "tags", "icon", "last modified", "created", "httprealm",
            "formactionorigin", "guid", "timecreated", "timelastused", "timepasswordchanged", "grouping", "fav",
        ]

        init?(header: [String]) {
            let columns = header.map { $0.lowercased() }
            func column(_ name: String?) -> Int? { name.flatMap(columns.firstIndex(of:)) }
            for format in Self.known {
                guard let user = column(format.user), let password = column(format.password), let address = column(format.address),
                    format.name == nil || column(format.name) != nil, format.group == nil || column(format.group) != nil
                else { continue }
                self.user = user
                self.password = password
                self.address = address
                name = column(format.name)
                group = column(format.group)
                let used = [user, password, address, column(format.name), column(format.group)]
                unused = columns.indices.filter { !used.contains($0) && !Self.descriptive.contains(columns[$0]) }
                return
            }
            return nil
        }

        func name(_ fields: [String]) -> String {
            var name = self.name.map { fields[$0] } ?? ""
            if name.isEmpty, let address { name = Self.host(of: fields[address]) }
            guard let group, !name.isEmpty else { return name }
            // The first group is the root, whose name every entry would begin with.
            let groups = fields[group].split(separator: "/", omittingEmptySubsequences: true).dropFirst()
            return (groups + [Substring(name)]).joined(separator: "/")
        }

        private static func host(of address: String) -> String {
            guard let scheme = address.range(of: "://") else { return address }
            return String(address[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" })
        }
    }
}

/// Reads the rows of a CSV file.
///
/// Source: RFC 4180, with either line break. Quotes may be used in any field.
struct CSVReader {
    struct Row {
        let fields: [String]
        /// The line on which the row begins.
        let line: Int
    }

    struct Problem: Error {
        let line: Int
        let reason: String
    }

    private var rest: Substring.UnicodeScalarView
    private var line = 1

    init(_ text: String) {
        rest = Substring(text).unicodeScalars
    }

    /// Returns the next row that is not empty; nil at the end.
    mutating func next() throws(Problem) -> Row? {
        while let first = rest.first, first == "\n" || first == "\r" { _ = removeFirst() }
        guard !rest.isEmpty else { return nil }
        let start = line
        var fields: [String] = []
        while true {
            fields.append(rest.first == "\"" ? try quotedField() : try plainField())
            guard let separator = rest.first else { break }
            _ = removeFirst()
            if separator == "\r", rest.first == "\n" { _ = removeFirst() }
            if separator != "," { break }
        }
        return Row(fields: fields, line: start)
    }

    private mutating func plainField() throws(Problem) -> String {
        let end = rest.firstIndex { $0 == "," || $0 == "\n" || $0 == "\r" } ?? rest.endIndex
        let field = String(rest[..<end])
        rest = rest[end...]
        guard !field.unicodeScalars.contains("\"") else { throw Problem(line: line, reason: "there are quotes inside a field") }
        return field
    }

    private mutating func quotedField() throws(Problem) -> String {
        let start = line
        var field = String.UnicodeScalarView()
        _ = removeFirst()
        while !rest.isEmpty {
            let scalar = removeFirst()
            guard scalar == "\"" else {
                field.append(scalar)
                continue
            }
            if rest.first == "\"" {
                field.append(removeFirst())
                continue
            }
            guard rest.first.map({ $0 == "," || $0 == "\n" || $0 == "\r" }) ?? true else {
                throw Problem(line: line, reason: "there is text after the closing quotes of a field")
            }
            return String(field)
        }
        throw Problem(line: start, reason: "the quotes of a field are not closed")
    }

    private mutating func removeFirst() -> Unicode.Scalar {
        let scalar = rest.removeFirst()
        if scalar == "\n" { line += 1 }
        return scalar
    }
}
