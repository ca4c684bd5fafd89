// SPDX-License-Identifier: Apache-2.0

/// What a command did: what came out before and after each thing typed, and how it exited.
struct RunResult {
    var outputs: [String]
    var standardError = ""
    var exitCode: Int32

    /// Nil if it is what the step expects, else both, to be read side by side.
    func difference(from step: Transcript.Step) -> String? {
        let expectedOutputs = step.exchanges.map(\.output)
        let isSame =
            exitCode == step.exitCode && outputs.count == expectedOutputs.count
            && zip(outputs, expectedOutputs).allSatisfy { Self.matches($0, $1) }
            && Self.matches(standardError, step.standardError)
        guard !isSame else { return nil }
        func show(_ outputs: [String], _ standardError: String, _ code: Int32) -> String {
            outputs.joined(separator: "<typed>") + (standardError.isEmpty ? "" : "! " + standardError) + "? \(code)"
        }
        return """
            expected:
            \(show(expectedOutputs, step.standardError, step.exitCode))
            came:
            \(show(outputs, standardError, exitCode))
            """
    }

    /// Compares line by line; blanks at the end of a line do not count, and … in what is expected matches any text.
    static func matches(_ text: String, _ expected: String) -> Bool {
        let lines = split(text)
        let expectedLines = split(expected)
        return lines.count == expectedLines.count && zip(lines, expectedLines).allSatisfy { line($0, matches: $1) }
    }

    private static func split(_ text: String) -> [Substring] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            var line = line
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    private static func line(_ line: Substring, matches expected: Substring) -> Bool {
        let parts = expected.split(separator: "…", omittingEmptySubsequences: false)
        guard parts.count > 1 else { return line == expected }
        guard var rest = line.hasPrefix(parts[0]) ? line.dropFirst(parts[0].count) : nil else { return false }
        for part in parts.dropFirst().dropLast() {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }
}
