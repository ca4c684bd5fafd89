// SPDX-License-Identifier: Apache-2.0

let testSelectionRules: [Rule] = [
    Rule(
        "`needs_traits` in .ci/run selects every test with the trait `.requiresTPM`, and each of its expressions matches a test",
        because: "`swift test` cannot filter by trait, and a test that is not selected would be skipped in both builds",
        caught: [
            [selection(#"'^ATests\.First'"#), testFile("@Suite(\"A\", .requiresTPM)\nstruct Second {\n    @Test(\"B\") func b() {}\n}")],
            [selection(#"'^ATests\.First/b'"#), testFile("@Suite(\"A\", .requiresTPM)\nstruct First {\n    @Test(\"B\") func b() {}\n}")],
            [
                selection(#"'^ATests\.First/b'"#),
                testFile(
                    "@Suite(\"A\")\nstruct First {\n    @Test(\"B\") func b() {}\n    @Test(\n        \"C\",\n        .requiresTPM)\n    func c() {}\n}"
                ),
            ],
            [selection(#"'^ATests\.First' '^ATests\.Missing'"#), testFile("@Suite(\"A\", .requiresTPM)\nstruct First {}")],
            [selection(#"'^ATests\.(First'"#), testFile("@Suite(\"A\", .requiresTPM)\nstruct First {}")],
            [selection(""), testFile("@Suite(\"A\")\nstruct First {}")],
            // The trait must be in the attribute, where this rule finds it.
            [selection(#"'^ATests\.First'"#), testFile("@Suite(\"A\")\nstruct First {}\nlet traits = [.requiresTPM]")],
        ],
        passed: [
            [
                selection(#"'^ATests\.' # all # '^No"#),
                testFile("@Suite(\"A\", .requiresTPM)\nstruct First {\n    @Test(\"B\", .tags(.a)) func b() {}\n}"),
            ],
            [
                selection(#"'^ATests\.First/b'"#),
                testFile(
                    "@Suite(\"A (in parts)\")\nstruct First {\n    struct Helper {}\n\n    @Test(\"B\", .requiresTPM, arguments: [(1, 2)])\n    func b() {}\n}"
                ),
            ],
        ],
        violations: { files in
            let tests = files.filter { $0.isTest && $0.target != "ArchitectureTests" }
            do {
                // A sample contains its own script. The files of the repository are Swift files only.
                let script = try files.first { $0.path == scriptPath }?.text ?? Repository.text(of: scriptPath)
                return try selectionViolations(tests, expressions: expressions(in: script))
            } catch {
                return [Violation(path: scriptPath, line: nil, message: "has no usable list `needs_traits`: \(error)")]
            }
        }
    )
]

private let scriptPath = ".ci/run"

/// A script that selects tests, for samples.
private func selection(_ expressions: String) -> SourceFile {
    SourceFile(path: scriptPath, text: "set -e\nneeds_traits=(\n    \(expressions)\n)\nmake 'nothing'\n")
}

private func testFile(_ text: String) -> SourceFile { SourceFile(path: "Tests/ATests/A.swift", text: text) }

/// Returns the quoted words of the list `needs_traits`, without its comments.
private func expressions(in script: String) -> [String] {
    guard let list = script.firstMatch(of: /\nneeds_traits=\(\n(.*?)\n\)\n/.dotMatchesNewlines()) else { return [] }
    return list.1.split(separator: "\n").flatMap { line in
        line.prefix { $0 != "#" }.matches(of: /'([^']+)'/).map { String($0.1) }
    }
}

private func selectionViolations(_ files: [SourceFile], expressions: [String]) throws -> [Violation] {
    guard !expressions.isEmpty else { return [Violation(path: scriptPath, line: nil, message: "the list `needs_traits` is empty")] }
    let patterns = try expressions.map { try Regex($0) }
    let files = files.map { (file: $0, declarations: $0.testDeclarations) }
    let identifiers = files.flatMap { $0.declarations.map(\.identifier) }
    let notSelected = files.flatMap { file, declarations in
        declarations.filter { declaration in declaration.requiresTPM && !patterns.contains { declaration.identifier.contains($0) } }
            .map { file.violation(line: $0.line, "\($0.identifier) is not selected by .ci/run") }
    }
    let withoutMatch = zip(expressions, patterns).filter { _, pattern in !identifiers.contains { $0.contains(pattern) } }
        .map { expression, _ in Violation(path: scriptPath, line: nil, message: "\(expression) matches no test") }
    let outsideAttributes = files.filter { file, declarations in
        file.code.count { $0.hasBytes(of: ".requiresTPM") } != declarations.count { $0.requiresTPM }
    }
    .map { $0.file.violation("uses .requiresTPM outside of @Suite(…) and @Test(…), or twice in one") }
    return notSelected + withoutMatch + outsideAttributes
}

/// A suite or a test.
private struct TestDeclaration {
    /// The start of its name for `swift test --filter`: `Target.Suite/` or `Target.Suite/test(`.
    let identifier: String
    let requiresTPM: Bool
    /// The index of the line of the attribute.
    let line: Int
}

extension SourceFile {
    private static let typeKeywords: Set<Substring> = ["struct", "class", "actor", "enum", "extension"]
    private static let declarationKeywords = typeKeywords.map(String.init) + ["func", "@Suite", "@Test"]

    /// The suites and tests of the file, from the attributes `@Suite` and `@Test`.
    fileprivate var testDeclarations: [TestDeclaration] {
        var types: [(indentation: Int, name: Substring)] = []
        var attribute: (text: String, line: Int)?
        var declarations: [TestDeclaration] = []
        for (index, line) in code.enumerated() where attribute != nil || Self.declarationKeywords.contains(where: line.hasBytes) {
            if line.hasBytes(of: "@Suite") || line.hasBytes(of: "@Test") { attribute = ("", index) }
            attribute?.text += line
            let words = line.split(separator: " ")
            let type = words.name(after: Self.typeKeywords).flatMap { $0 == "func" ? nil : $0 }
            let function = words.name(after: ["func"])
            if type != nil || function != nil {
                let indentation = line.prefix { $0 == " " }.count
                types.removeAll { $0.indentation >= indentation }
                if let type { types.append((indentation, type)) }
            }
            guard let current = attribute else { continue }
            let isSuite = current.text.contains("@Suite")
            guard isSuite ? type != nil : function != nil else { continue }
            let scope = types.map { $0.name + "/" }.joined()
            declarations.append(
                TestDeclaration(
                    identifier: "\(target ?? "").\(scope)" + (isSuite ? "" : "\(function ?? "")("),
                    requiresTPM: current.text.contains(".requiresTPM"), line: current.line))
            attribute = nil
        }
        return declarations
    }
}

extension [Substring] {
    /// Returns the name in the word after the first keyword.
    fileprivate func name(after keywords: Set<Substring>) -> Substring? {
        guard let index = firstIndex(where: keywords.contains), index + 1 < count else { return nil }
        return self[index + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    }
}
