// SPDX-License-Identifier: Apache-2.0

let layoutRules: [Rule] = [
    Rule(
        "The first line names the license",
        because: "a file that is copied elsewhere must keep its terms",
        caught: [SourceFile(path: "Sources/Valet/A.swift", text: "import Foundation\n// SPDX-License-Identifier: Apache-2.0")],
        passed: [SourceFile(path: "Sources/Valet/A.swift", text: "// SPDX-License-Identifier: Apache-2.0\n")],
        eachFile: { file in
            file.lines.first == "// SPDX-License-Identifier: Apache-2.0" ? [] : [file.violation(line: 0, "does not name the license")]
        }
    ),
    Rule(
        "Valet calls SecItem functions in a single file; Locksmith does too",
        because: "Apple's stricter conversions cannot be compiled on Linux, so the calls that depend on them are reviewed in one place",
        caught: [
            [
                SourceFile(path: "Sources/Valet/A.swift", text: "SecItemAdd(query, nil)"),
                SourceFile(path: "Sources/Valet/B.swift", text: "SecItemDelete(query)"),
            ]
        ],
        passed: [
            [
                SourceFile(path: "Sources/Valet/A.swift", text: "SecItemAdd(query, nil)\nSecItemDelete(query)"),
                SourceFile(path: "Sources/Valet/B.swift", text: "// SecItemAdd(query, nil)"),
                SourceFile(path: "Sources/ValetCLI/A.swift", text: "SecItemDelete(query)"),
            ]
        ],
        violations: { files in
            ["Valet", "Locksmith"].flatMap { target in
                let callers = files.filter { $0.target == target && $0.isSource && $0.callsSecItem }
                return callers.count > 1 ? callers.map { $0.violation("calls SecItem functions, as other files do") } : []
            }
        }
    ),
    Rule(
        "The SQL that writes the table `items` is in StoreSchema.swift, and only StoreSession+Writing.swift runs it",
        because: "each write of an item has to be recorded for synchronization, and counted in the state",
        caught: [
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "let sql = \"DELETE FROM items WHERE number = 1\""),
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "try connection.execute(\"INSERT OR REPLACE INTO items VALUES (1)\")"),
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "case .a:\n    \"UPDATE items SET tag = x''\""),
            SourceFile(path: "Sources/KeychainStore/Sessions/A.swift", text: "let statement = try connection.statement(.remove)"),
            SourceFile(path: "Sources/KeychainStore/Sync/A.swift", text: "try connection.run(.replaceAll)"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainStore/Rows/StoreSchema.swift", text: "case .remove: \"DELETE FROM items WHERE number = ?1\""),
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "// Not with UPDATE items.\nlet sql = \"DELETE FROM item_attributes\""),
            SourceFile(
                path: "Sources/KeychainStore/A.swift", text: "try connection.statement(.removeCopy)\nlet sql = \"SELECT tag FROM items\""),
            SourceFile(
                path: "Sources/KeychainStore/Sessions/StoreSession+Writing.swift", text: "try connection.statement(.insert).run()"),
            SourceFile(path: "Tests/KeychainStoreTests/A.swift", text: "try raw.execute(\"DELETE FROM items\")"),
        ],
        eachFile: { file in
            guard file.target == "KeychainStore", file.isSource else { return [] }
            var violations: [Violation] = []
            if !file.path.hasSuffix("/Rows/StoreSchema.swift") {
                let statement = /(INSERT|REPLACE|UPDATE|DELETE)\b.*\bitems\b/
                violations += file.lines.indices.filter { index in
                    file.lines[index].hasBytes(of: "items")
                        && file.lines[index].dropLast(file.comments[index].count).contains(statement)
                }
                .map { file.violation(line: $0, "writes `items` with SQL of its own") }
            }
            if !file.path.hasSuffix("/Sessions/StoreSession+Writing.swift") {
                let statements = ["(.insert)", "(.replaceContent)", "(.replaceAll)", "(.remove)"]
                violations += file.violations(ofCodeContaining: statements) { "runs \($0), which writes `items`" }
            }
            return violations
        }
    ),
]

extension SourceFile {
    fileprivate var callsSecItem: Bool {
        code.contains { line in
            ["SecItemAdd(", "SecItemCopyMatching(", "SecItemUpdate(", "SecItemDelete("].contains { line.contains($0) }
        }
    }
}

let documentationRules: [Rule] = [
    Rule(
        "The table 'How a write reaches the disk' in CONTRIBUTING.md lists at most \(writePathLimit) files, each of which exists",
        because: "a reader follows a write from the first file to the last, so the path must be correct and short",
        caught: [
            [writePathDocument([]), SourceFile(path: "Sources/Valet/Valet.swift", text: "")],
            [writePathDocument(["Valet/Valet.swift", "Valet/Gone.swift"]), SourceFile(path: "Sources/Valet/Valet.swift", text: "")],
            [writePathDocument((0...writePathLimit).map { "A/\($0).swift" })]
                + (0...writePathLimit).map { SourceFile(path: "Sources/A/\($0).swift", text: "") },
        ],
        passed: [[writePathDocument(["Valet/Valet.swift"]), SourceFile(path: "Sources/Valet/Valet.swift", text: "")]],
        includesOtherTexts: true,
        violations: { files in
            guard let document = files.first(where: { $0.path == "CONTRIBUTING.md" }) else { return [] }
            let rows = document.lines.drop { $0 != writePathHeader }.dropFirst(2).prefix { $0.hasPrefix("|") }
            let paths = rows.flatMap { row in
                row.split(separator: "|")[0].split(separator: "`").map(String.init).filter { $0.contains(".") }
            }
            guard !paths.isEmpty else { return [document.violation("the table is missing or has another header")] }
            let present = Set(files.map(\.path))
            let absent = paths.filter { !present.contains("Sources/\($0)") }.map { document.violation("Sources/\($0) does not exist") }
            return absent + (paths.count > writePathLimit ? [document.violation("the table lists \(paths.count) files")] : [])
        }
    ),
    Rule(
        "Every public declaration under Sources has a doc comment",
        because: "its callers need the meaning, units, limits, and errors",
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "public struct A {}"),
            SourceFile(path: "Sources/Valet/A.swift", text: "// Not a doc comment.\npublic final class A {}"),
            SourceFile(path: "Sources/Valet/A.swift", text: "/// A.\n\npublic let a = 1"),
            SourceFile(path: "Sources/Valet/A.swift", text: "/// A.\nstruct A {\n    @inlinable public static func a() {}\n}"),
        ],
        passed: [
            SourceFile(
                path: "Sources/Valet/A.swift",
                text: "public import Foundation\n/// A.\n@objc(VALA)\n@available(macOS 13, *)\npublic struct A {}"),
            SourceFile(path: "Sources/Valet/A.swift", text: "/// A.\n// swift-format-ignore: AlwaysUseLowerCamelCase\npublic let a = 1"),
            SourceFile(path: "Sources/Valet/A.swift", text: "public override func a() {}\npackage struct A {}\nlet publicKey = 1"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "public struct A {}"),
        ],
        eachFile: { file in
            guard file.isSource else { return [] }
            return file.code.indices.filter { file.declaresPublic(at: $0) && !file.hasDocComment(above: $0) }
                .map { file.violation(line: $0, "is public without a doc comment") }
        }
    ),
    Rule(
        "Every case that a conformance test cites is in SecItem-behavior.md, and every case there is cited or listed as not applicable",
        because: "that document lists what the conformance tests must show",
        caught: [
            [behaviorDocument(cases: [1]), conformanceTest(cases: [1, 2])],
            [behaviorDocument(cases: [1, 2]), conformanceTest(cases: [1])],
            [behaviorDocument(cases: [1], notApplicable: [2]), conformanceTest(cases: [1, 2])],
            [behaviorDocument(cases: [1]), SourceFile(path: "Tests/ValetTests/A.swift", text: "@Test(\"Case 1: a\")")],
            [behaviorDocument(cases: []), conformanceTest(cases: [])],
        ],
        passed: [
            [behaviorDocument(cases: [1, 2]), conformanceTest(cases: [1]), conformanceTest(cases: [2, 1])],
            [behaviorDocument(cases: [1], notApplicable: [2]), conformanceTest(cases: [1])],
            [
                behaviorDocument(cases: [1]), conformanceTest(cases: [1]),
                SourceFile(path: "Tests/ConformanceTests/A.swift", text: "case 2: break"),
            ],
        ],
        violations: conformanceCaseViolations
    ),
]

private let behaviorDocumentPath = "Sources/KeychainServices/KeychainServices.docc/SecItem-behavior.md"

/// A document with these cases, for samples.
private func behaviorDocument(cases: [Int], notApplicable: [Int] = []) -> SourceFile {
    func rows(_ numbers: [Int]) -> String { numbers.map { "| \($0) | a |\n" }.joined() }
    let text = "## 5. Limits\n| 99 | a |\n## 14. Cases\n\(rows(cases))\n### Cases that do not apply\n\(rows(notApplicable))"
    return SourceFile(path: behaviorDocumentPath, text: text)
}

/// A test file that cites these cases, for samples.
private func conformanceTest(cases: [Int]) -> SourceFile {
    SourceFile(path: "Tests/ConformanceTests/A.swift", text: cases.map { "@Test(\"Case \($0): a\") func a() {}\n" }.joined())
}

private func conformanceCaseViolations(_ files: [SourceFile]) -> [Violation] {
    let document: SourceFile
    do {
        // A sample contains its own document. The files of the repository are Swift files only.
        document =
            try files.first { $0.path == behaviorDocumentPath }
            ?? SourceFile(path: behaviorDocumentPath, text: Repository.text(of: behaviorDocumentPath))
    } catch {
        return [Violation(path: behaviorDocumentPath, line: nil, message: "cannot be read: \(error)")]
    }
    let cases = document.rowNumbers(below: "## 14. Cases")
    let notApplicable = document.rowNumbers(below: "### Cases that do not apply")
    guard !cases.isEmpty else { return [document.violation("has no cases")] }

    let citations = files.filter { $0.target == "ConformanceTests" }.flatMap { file in
        file.citedCases.map { (file: file, line: $0.line, number: $0.number) }
    }
    let unknown = citations.filter { cases[$0.number] == nil }.map { citation in
        citation.file.violation(line: citation.line, "cites case \(citation.number), which is not a case that applies")
    }
    let cited = Set(citations.map { $0.number })
    let untested = cases.filter { !cited.contains($0.key) && notApplicable[$0.key] == nil }.sorted { $0.key < $1.key }.map { number, line in
        document.violation(line: line, "has case \(number), which no conformance test cites")
    }
    return unknown + untested
}

extension SourceFile {
    /// The numbers in the first column of the tables directly below `heading`, with the indices of their lines.
    fileprivate func rowNumbers(below heading: String) -> [Int: Int] {
        var numbers: [Int: Int] = [:]
        var isBelowHeading = false
        for (index, line) in lines.enumerated() {
            if line.hasPrefix("#") { isBelowHeading = line == heading }
            guard isBelowHeading, let row = line.firstMatch(of: /^\| (\d+) \|/), let number = Int(row.1) else { continue }
            numbers[number] = index
        }
        return numbers
    }

    fileprivate var citedCases: [(line: Int, number: Int)] {
        lines.enumerated().flatMap { index, line -> [(line: Int, number: Int)] in
            guard line.hasBytes(of: "Case ") else { return [] }
            return line.matches(of: /\bCase (\d+)/).compactMap { match in Int(match.1).map { (line: index, number: $0) } }
        }
    }
}

extension SourceFile {
    fileprivate func declaresPublic(at line: Int) -> Bool {
        guard code[line].hasBytes(of: "public") || code[line].hasBytes(of: "open") else { return false }
        let words = code[line].split(whereSeparator: { " \t".contains($0) })
        guard words.contains("public") || words.contains("open") else { return false }
        // Without a keyword, `public` is a name.
        let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "typealias", "func", "let", "var", "macro", "case"]
        let declares = words.contains { keywords.contains($0) || $0.hasPrefix("init") || $0.hasPrefix("subscript") }
        return declares && !words.contains("import") && !words.contains("override") && !words.contains("extension")
    }

    fileprivate func hasDocComment(above line: Int) -> Bool {
        var above = line - 1
        while above >= 0 {
            if comments[above].hasPrefix("///") { return true }
            let isAttribute = code[above].drop(while: { $0 == " " }).hasPrefix("@")
            let isToolComment = comments[above].hasPrefix("// swift-format-ignore")
            guard isAttribute || isToolComment else { return false }
            above -= 1
        }
        return false
    }
}

let safetyRules: [Rule] = [
    Rule(
        "Code under Sources does not trap and is complete",
        because: "input, environment, and stored bytes must never end the calling program, and unfinished work is not shipped",
        caught: [
            "try! f()", "a as! B", "fatalError()", "precondition(a)", "assert(a)", "assertionFailure()", "// TODO: more", "// FIXME",
            "unimplemented() // XXX: later",
        ].map {
            SourceFile(path: "Sources/Valet/A.swift", text: $0)
        },
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "// Never try! here.\nlet a = \"fatalError(\"\ntry? f()\nb as? C"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "fatalError()"),
        ],
        eachFile: { file in
            guard file.isSource else { return [] }
            let traps = ["try!", "as!", "fatalError(", "precondition(", "assert(", "assertionFailure("]
            let inCode = file.violations(ofCodeContaining: traps) { "\($0) traps" }
            let inComments = file.comments.indices.filter { index in
                ["TODO", "FIXME", "XXX"].contains { file.comments[index].hasBytes(of: $0) }
            }
            return inCode + inComments.map { file.violation(line: $0, "marks unfinished work") }
        }
    ),
    Rule(
        "`@unchecked Sendable`, `nonisolated(unsafe)`, and `preconditionFailure` have a comment with the reason",
        because: "the compiler does not check these, so a reader must be able to",
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "import Foundation\nfinal class A: @unchecked Sendable {}"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "// A reason for something else.\n\nnonisolated(unsafe) var a = 1"),
            SourceFile(path: "Sources/Valet/A.swift", text: "default: preconditionFailure(\"no\")"),
        ],
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "/// A.\n// The lock guards it.\nfinal class A: @unchecked Sendable {}"),
            SourceFile(path: "Sources/Valet/A.swift", text: "nonisolated(unsafe) var a = 1  // Written once, before any thread."),
            SourceFile(path: "Sources/Valet/A.swift", text: "// The lock guards it.\n@objc(A)\nfinal class A: @unchecked Sendable {}"),
        ],
        eachFile: { file in
            file.violations(ofCodeContaining: ["@unchecked Sendable", "nonisolated(unsafe)", "preconditionFailure("]) {
                "\($0) without a reason"
            }
            .filter { violation in !file.hasComment(beside: (violation.line ?? 1) - 1) }
        }
    ),
    Rule(
        "Tests never change the environment or the working directory",
        because: "tests run in parallel in one process",
        caught: [
            "setenv(\"HOME\", \"/\", 1)", "unsetenv(\"HOME\")", "putenv(p)", "chdir(\"/\")", "manager.changeCurrentDirectoryPath(\"/\")",
        ].map {
            SourceFile(path: "Tests/ValetTests/A.swift", text: $0)
        },
        passed: [SourceFile(path: "Tests/ValetTests/A.swift", text: "let a = \"setenv(\"\nposix_spawn_file_actions_addchdir_np(a, b)")],
        eachFile: { file in
            guard file.isTest else { return [] }
            // `chdir(` is in `fchdir(` too, and `setenv(` in `unsetenv(`.
            return file.violations(ofCodeContaining: ["setenv(", "putenv(", "chdir(", "changeCurrentDirectoryPath("]) {
                "\($0) affects all tests"
            }
        }
    ),
    Rule(
        "Constants of KeychainServices are used as keys in the form `kSec… as String`",
        because: "on Apple platforms they are CFString, and the code would not compile there otherwise",
        caught: [SourceFile(path: "Sources/Valet/A.swift", text: "let query: [String: Any] = [kSecClass: a]")],
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "let query: [String: Any] = [kSecClass as String: kSecClassGenericPassword]"),
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "let names = [kSecClass: 1]"),
        ],
        eachFile: { file in
            guard file.isSource, ["Valet", "Locksmith", "ValetCLI"].contains(file.target ?? "") else { return [] }
            return file.code.indices.filter {
                file.code[$0].hasBytes(of: "kSec") && file.code[$0].firstMatch(of: /\bkSec\w+\s*:/.wordBoundaryKind(.simple)) != nil
            }
            .map { file.violation(line: $0, "uses a constant as a key without `as String`") }
        }
    ),
]

extension SourceFile {
    /// Whether there is a comment on the line, or directly above it and its attributes.
    fileprivate func hasComment(beside line: Int) -> Bool {
        if !comments[line].isEmpty { return true }
        var above = line - 1
        while above >= 0, comments[above].isEmpty, code[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
        return above >= 0 && !comments[above].isEmpty
    }
}

private let writePathLimit = 25
private let writePathHeader = "| File in `Sources` | What it does |"

/// A document with a table of the files that a write enters.
private func writePathDocument(_ paths: [String]) -> SourceFile {
    let rows = paths.map { "| `\($0)` | a step of the write |\n" }.joined()
    return SourceFile(path: "CONTRIBUTING.md", text: writePathHeader + "\n|---|---|\n" + rows + "\nText.")
}
