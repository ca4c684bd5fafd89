// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Foundation
import Synchronization
import Testing

/// A file of the repository.
struct SourceFile: Sendable {
    /// The path from the root of the repository, such as `Sources/Valet/Valet.swift`.
    let path: String
    let text: String
    /// The lines of the text.
    let lines: [String]
    /// The same lines without comments and without the contents of string literals; empty for a file that is not Swift.
    let code: [String]
    /// The comments on each line, including their markers; empty for a file that is not Swift.
    let comments: [String]
    /// The import declarations.
    let imports: [Import]

    init(path: String, text: String) {
        self.path = path
        self.text = text
        guard path.hasSuffix(".swift") else {
            lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            (code, comments, imports) = ([], [], [])
            return
        }
        let scan = SwiftScan(text)
        lines = scan.lines
        code = scan.code
        comments = scan.comments
        imports = scan.code.enumerated().compactMap { Import(code: $1, line: $0) }
    }

    /// The name of the file's target, such as `Valet` for `Sources/Valet/Valet.swift`; nil for a file outside of a target.
    var target: String? {
        let parts = path.split(separator: "/")
        guard parts.count >= 3, parts[0] == "Sources" || parts[0] == "Tests" else { return nil }
        return String(parts[1])
    }

    var isSource: Bool { path.hasPrefix("Sources/") }
    var isTest: Bool { path.hasPrefix("Tests/") }
}

/// A violation of a rule.
struct Violation: Sendable, CustomStringConvertible {
    let path: String
    /// The number of the line, from 1; nil for the file as a whole.
    let line: Int?
    let message: String

    var description: String { path + (line.map { ":\($0)" } ?? "") + ": " + message }
}

extension SourceFile {
    func violation(line index: Int? = nil, _ message: String) -> Violation {
        Violation(path: path, line: index.map { $0 + 1 }, message: message)
    }

    /// Returns a violation for each line whose code contains one of `words`.
    func violations(ofCodeContaining words: [String], _ message: (String) -> String) -> [Violation] {
        code.indices.flatMap { index in
            words.filter { code[index].hasBytes(of: $0) }.map { violation(line: index, message($0)) }
        }
    }
}

extension String {
    /// Whether the bytes of `text` occur in the string.
    ///
    /// Use this for text that most lines do not contain: comparing characters would take most of the time of the rules.
    func hasBytes(of text: String) -> Bool {
        // Both are valid during the call.
        unsafe strstr(self, text) != nil
    }
}

/// An import declaration.
struct Import: Sendable {
    /// The top-level module, such as `Foundation` for `import struct Foundation.Data`.
    let module: String
    let isExported: Bool
    /// The index of the line.
    let line: Int

    private static let modifiers: Set<String> = [
        "public", "package", "internal", "fileprivate", "private", "@testable", "@_exported", "@preconcurrency", "@_implementationOnly",
        "@_spi", "unsafe", "@safe",
    ]
    private static let kinds: Set<String> = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]

    /// Parses the declaration on a line of code; nil if there is none.
    init?(code: String, line: Int) {
        guard code.utf8.contains(UInt8(ascii: "i")), code.contains("import ") else { return nil }
        var words = code.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        var isExported = false
        while let first = words.first, Self.modifiers.contains(first) {
            isExported = isExported || first == "@_exported"
            words.removeFirst()
        }
        guard words.first == "import" else { return nil }
        words.removeFirst()
        if let kind = words.first, Self.kinds.contains(kind) { words.removeFirst() }
        guard let path = words.first, let module = path.split(separator: ".").first else { return nil }
        self.module = String(module)
        self.isExported = isExported
        self.line = line
    }
}

/// Separates code, comments, and string literals of a Swift file, line by line.
///
/// An interpolation counts as part of its literal.
struct SwiftScan {
    private(set) var lines: [String] = []
    private(set) var code: [String] = []
    private(set) var comments: [String] = []

    private enum State {
        case code
        case lineComment
        case blockComment(depth: Int)
        case literal(pounds: Int, multiline: Bool)
    }

    init(_ text: String) {
        var state = State.code
        for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            var code: [UInt8] = []
            var comment: [UInt8] = []
            Self.scan(Array(line), state: &state, code: &code, comment: &comment)
            lines.append(String(decoding: line, as: UTF8.self))
            self.code.append(String(decoding: code, as: UTF8.self))
            comments.append(String(decoding: comment, as: UTF8.self))
        }
    }

    private static func scan(_ line: [UInt8], state: inout State, code: inout [UInt8], comment: inout [UInt8]) {
        var index = 0
        while index < line.count {
            switch state {
            case .code:
                // Most bytes start neither a comment nor a literal.
                let start = index
                while index < line.count, line[index] != slash, line[index] != quote, line[index] != pound { index += 1 }
                code += line[start..<index]
                guard index < line.count else { break }
                if starts(line, "//", at: index) {
                    state = .lineComment
                } else if starts(line, "/*", at: index) {
                    state = .blockComment(depth: 1)
                    index += 2
                } else if let opening = literalOpening(line, at: index) {
                    state = .literal(pounds: opening.pounds, multiline: opening.multiline)
                    code.append(quote)
                    index += opening.length
                } else {
                    code.append(line[index])
                    index += 1
                }
            case .lineComment:
                comment += line[index...]
                index = line.count
            case .blockComment(let depth):
                if starts(line, "*/", at: index) {
                    state = depth == 1 ? .code : .blockComment(depth: depth - 1)
                    index += 2
                } else if starts(line, "/*", at: index) {
                    state = .blockComment(depth: depth + 1)
                    index += 2
                } else {
                    comment.append(line[index])
                    index += 1
                }
            case .literal(let pounds, let multiline):
                while index < line.count, line[index] != quote, line[index] != backslash { index += 1 }
                guard index < line.count else { break }
                let suffix = String(repeating: "#", count: pounds)
                let closing = (multiline ? "\"\"\"" : "\"") + suffix
                let escape = "\\" + suffix
                if starts(line, escape + "(", at: index) {
                    index = endOfInterpolation(line, from: index + escape.utf8.count)
                } else if starts(line, escape, at: index) {
                    index += escape.utf8.count + 1
                } else if starts(line, closing, at: index) {
                    state = .code
                    code.append(quote)
                    index += closing.utf8.count
                } else {
                    index += 1
                }
            }
        }
        if case .lineComment = state { state = .code }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let slash = UInt8(ascii: "/")
    private static let pound = UInt8(ascii: "#")
    private static let backslash = UInt8(ascii: "\\")

    private static func starts(_ line: [UInt8], _ token: String, at index: Int) -> Bool {
        line[index] == token.utf8.first && line[index...].starts(with: token.utf8)
    }

    private static func literalOpening(_ line: [UInt8], at index: Int) -> (pounds: Int, multiline: Bool, length: Int)? {
        guard line[index] == quote || line[index] == UInt8(ascii: "#") else { return nil }
        let pounds = line[index...].prefix { $0 == UInt8(ascii: "#") }.count
        let quotes = line[(index + pounds)...].prefix { $0 == quote }.count
        guard quotes > 0 else { return nil }
        let multiline = quotes >= 3
        return (pounds, multiline, pounds + (multiline ? 3 : 1))
    }

    /// Returns the index after the parenthesis that closes the one at `start`, or the end of the line.
    private static func endOfInterpolation(_ line: [UInt8], from start: Int) -> Int {
        var depth = 0
        for index in start..<line.count {
            if line[index] == UInt8(ascii: "(") { depth += 1 }
            if line[index] == UInt8(ascii: ")") {
                depth -= 1
                if depth == 0 { return index + 1 }
            }
        }
        return line.count
    }
}

/// The files of the repository that the rules apply to.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The Swift files of `Sources` and `Tests`, sorted by path and read once for all rules.
    static func swiftFiles() throws -> [SourceFile] { try swift.get() }

    /// The documents, and the texts in `Sources`, `Tests`, and `Scripts` other than Swift files.
    static func otherTexts() throws -> [SourceFile] { try others.get() }

    static func text(of path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    private static let swift = Result { try files(in: ["Sources", "Tests"], suffixes: ["swift"]) }

    private static let others = Result {
        let single = [
            "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Bindings/ObjectiveC/README.md", "Examples/README.md",
            "Makefile",
        ]
        let suffixes = ["md", "c", "h", "txt", "sh", "py", "supp", "skip", "smoke", "ignore", "map"]
        return try single.map { SourceFile(path: $0, text: try text(of: $0)) }
            + files(in: ["Sources", "Tests", "Scripts"], suffixes: Set(suffixes))
    }

    private static func files(in folders: [String], suffixes: Set<String>) throws -> [SourceFile] {
        let paths = try folders.flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
                .filter { suffixes.contains(URL(filePath: $0).pathExtension) }.sorted().map { "\(folder)/\($0)" }
        }
        let texts = try paths.map { try text(of: $0) }
        let files = Mutex([SourceFile?](repeating: nil, count: paths.count))
        DispatchQueue.concurrentPerform(iterations: paths.count) { index in
            let file = SourceFile(path: paths[index], text: texts[index])
            files.withLock { $0[index] = file }
        }
        return files.withLock { $0.compactMap(\.self) }
    }
}

@Suite("Separating code from comments and literals")
struct SwiftScanTests {
    @Test(
        "Comments and literals are removed",
        arguments: [
            (#"let a = 1 // try! no"#, "let a = 1 "),
            (#"let a = "try!" + b"#, #"let a = "" + b"#),
            (#"let a = "\(try! b)" + c"#, #"let a = "" + c"#),
            (#"let a = "\"try!" + b"#, #"let a = "" + b"#),
            (##"let a = #"a " try!"# + b"##, #"let a = "" + b"#),
            (#"a /* try! /* as! */ x */ b"#, "a  b"),
            (#"let a = "http://b" + c"#, #"let a = "" + c"#),
        ])
    func codeOfALine(_ source: String, _ expected: String) {
        #expect(SwiftScan(source).code == [expected])
    }

    @Test("A literal of several lines")
    func multilineLiteral() {
        let scan = SwiftScan("let a = \"\"\"\n  try! \"b\" // c\n  \"\"\" + d")
        #expect(scan.code == ["let a = \"", "", "\" + d"])
        #expect(scan.comments == ["", "", ""])
    }

    @Test("Comments keep their markers")
    func comments() {
        #expect(SwiftScan("/// A\nlet a = 1 // b").comments == ["/// A", "// b"])
    }
}
