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

    /// Index after the parenthesis that closes the one at `start`, or the end of the line.
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
