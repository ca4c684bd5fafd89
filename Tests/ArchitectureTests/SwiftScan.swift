// SPDX-License-Identifier: Apache-2.0

/// Tells code, comments and string literals of a Swift file apart, line by line.
///
/// Interpolations count as part of their literal: no rule looks into them.
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
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var code = ""
            var comment = ""
            scan(Array(line.unicodeScalars), state: &state, code: &code, comment: &comment)
            lines.append(String(line))
            self.code.append(code)
            comments.append(comment)
        }
    }

    private func scan(_ scalars: [Unicode.Scalar], state: inout State, code: inout String, comment: inout String) {
        func starts(_ token: String, at index: Int) -> Bool {
            scalars[index...].starts(with: token.unicodeScalars)
        }
        var index = 0
        while index < scalars.count {
            switch state {
            case .code:
                if starts("//", at: index) {
                    state = .lineComment
                } else if starts("/*", at: index) {
                    state = .blockComment(depth: 1)
                    index += 2
                } else if let opening = Self.literalOpening(scalars, at: index) {
                    state = .literal(pounds: opening.pounds, multiline: opening.multiline)
                    code += "\""
                    index += opening.length
                } else {
                    code.unicodeScalars.append(scalars[index])
                    index += 1
                }
            case .lineComment:
                comment.unicodeScalars.append(scalars[index])
                index += 1
            case .blockComment(let depth):
                if starts("*/", at: index) {
                    state = depth == 1 ? .code : .blockComment(depth: depth - 1)
                    index += 2
                } else if starts("/*", at: index) {
                    state = .blockComment(depth: depth + 1)
                    index += 2
                } else {
                    comment.unicodeScalars.append(scalars[index])
                    index += 1
                }
            case .literal(let pounds, let multiline):
                let closing = (multiline ? "\"\"\"" : "\"") + String(repeating: "#", count: pounds)
                let escape = "\\" + String(repeating: "#", count: pounds)
                if starts(escape + "(", at: index) {
                    index = Self.endOfInterpolation(scalars, from: index + escape.unicodeScalars.count)
                } else if starts(escape, at: index) {
                    index += escape.unicodeScalars.count + 1
                } else if starts(closing, at: index) {
                    state = .code
                    code += "\""
                    index += closing.unicodeScalars.count
                } else {
                    index += 1
                }
            }
        }
        if case .lineComment = state { state = .code }
    }

    private static func literalOpening(
        _ scalars: [Unicode.Scalar], at index: Int
    ) -> (pounds: Int, multiline: Bool, length: Int)? {
        var pounds = 0
        while index + pounds < scalars.count, scalars[index + pounds] == "#" { pounds += 1 }
        let quotes = scalars[(index + pounds)...].prefix(3)
        guard quotes.first == "\"" else { return nil }
        let multiline = quotes.count == 3 && quotes.allSatisfy { $0 == "\"" }
        return (pounds, multiline, pounds + (multiline ? 3 : 1))
    }

    /// Index after the parenthesis that closes the one at `start`, or the end of the line.
    private static func endOfInterpolation(_ scalars: [Unicode.Scalar], from start: Int) -> Int {
        var depth = 0
        for index in start..<scalars.count {
            if scalars[index] == "(" { depth += 1 }
            if scalars[index] == ")" {
                depth -= 1
                if depth == 0 { return index + 1 }
            }
        }
        return scalars.count
    }
}
