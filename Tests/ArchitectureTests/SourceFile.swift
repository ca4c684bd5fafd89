// SPDX-License-Identifier: Apache-2.0

/// One file of the repository, as the rules see it.
struct SourceFile: Sendable {
    /// Path from the root of the repository, such as `Sources/Valet/Valet.swift`.
    let path: String
    /// The lines as they stand.
    let lines: [String]
    /// The same lines with comments and the contents of string literals blanked: what the compiler acts on.
    let code: [String]
    /// The text of the comments on each line, markers included; empty where there is none.
    let comments: [String]

    init(path: String, text: String) {
        self.path = path
        let scan = SwiftScan(text)
        lines = scan.lines
        code = scan.code
        comments = scan.comments
    }

    /// `Valet` of `Sources/Valet/Valet.swift`; `ValetTests` of `Tests/ValetTests/…`; nil for a file outside any target.
    var target: String? {
        let parts = path.split(separator: "/")
        guard parts.count >= 3, parts[0] == "Sources" || parts[0] == "Tests" else { return nil }
        return String(parts[1])
    }

    /// The file's name without `.swift`.
    var stem: String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        return name.hasSuffix(".swift") ? String(name.dropLast(6)) : name
    }

    var isSource: Bool { path.hasPrefix("Sources/") }
    var isTest: Bool { path.hasPrefix("Tests/") }
}

/// A place that breaks a rule.
struct Violation: Sendable, CustomStringConvertible {
    let path: String
    /// Counted from 1; nil when the file as a whole is meant.
    let line: Int?
    let message: String

    var description: String { path + (line.map { ":\($0)" } ?? "") + ": " + message }
}

extension SourceFile {
    func violation(line index: Int? = nil, _ message: String) -> Violation {
        Violation(path: path, line: index.map { $0 + 1 }, message: message)
    }

    /// A violation for each line whose code contains one of `words`.
    func violations(ofCodeContaining words: [String], _ message: (String) -> String) -> [Violation] {
        code.indices.flatMap { index in
            words.filter { code[index].contains($0) }.map { violation(line: index, message($0)) }
        }
    }
}
