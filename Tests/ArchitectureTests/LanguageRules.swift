// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// Words that name no subject, or that stand for a standard term.
private let unclearWords = [
    "nobody", "somebody", "whoever", "anew", "let go of", "lets go of", "give back", "gives back", "at one stroke", "takes away",
    "comes of it",
]

/// Lines where such a word is the right one, for instance about people.
///
/// At most a dozen.
private let allowedLines: [(path: String, line: String)] = [
    // A user of every system.
    ("Tests/KeychainDaemonTests/LoginTests.swift", "user: \"nobody\"")
]

let languageRules: [Rule] = [
    Rule(
        "Code, tests, scripts, and documents do not use words that hide the subject or replace a standard term",
        because: "a sentence names its subject, such as a process or a caller, and readers know the terms of the field",
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "// Nobody waits."),
            SourceFile(path: "Sources/Valet/A.swift", text: "let a = \"the file is written anew\""),
            SourceFile(path: "Sources/Valet/Valet.docc/A.md", text: "The pool\nlets go of it."),
            SourceFile(path: "README.md", text: "Whoever asks"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "    @Test(\"Nobody waits\")"),
            SourceFile(path: "Makefile", text: "# Takes away what was installed"),
        ],
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "// A new item; `isAnewItem`."),
            // This file lists the words.
            SourceFile(path: "Tests/ArchitectureTests/LanguageRules.swift", text: "// Nobody waits."),
        ],
        includesOtherTexts: true,
        eachFile: { file in
            guard file.path != "Tests/ArchitectureTests/LanguageRules.swift" else { return [] }
            let text = file.text.lowercased()
            let words = unclearWords.filter { text.hasBytes(of: $0) }
            guard !words.isEmpty else { return [] }
            return file.lines.enumerated().flatMap { index, line in
                words.filter { line.containsWord($0) }
                    .filter { _ in !allowedLines.contains { $0.path == file.path && line.contains($0.line) } }
                    .map { file.violation(line: index, "contains \"\($0)\"") }
            }
        }
    )
]

extension String {
    /// Whether the string contains `word`, in any case, and not as a part of a longer word.
    fileprivate func containsWord(_ word: String) -> Bool {
        var rest = self[...]
        while let range = rest.range(of: word, options: .caseInsensitive) {
            let before = range.lowerBound == startIndex ? nil : self[index(before: range.lowerBound)]
            let after = range.upperBound == endIndex ? nil : self[range.upperBound]
            if before?.isLetter != true && after?.isLetter != true { return true }
            rest = self[range.upperBound...]
        }
        return false
    }
}

@Suite("Exceptions from the rule about words")
struct UnclearWordTests {
    @Test("There are at most twelve, and each is needed")
    func exceptionsAreNeeded() throws {
        #expect(allowedLines.count <= 12)
        let files = try Repository.swiftFiles() + Repository.otherTexts()
        for allowed in allowedLines {
            #expect(files.contains { $0.path == allowed.path && $0.text.hasBytes(of: allowed.line) }, "\(allowed.path): \(allowed.line)")
        }
    }
}
