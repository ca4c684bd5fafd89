// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Links that `Scripts/docs.sh` does not check, and those that it does, so that a wrong one is found without building the documentation.
let linkRules: [Rule] = [
    Rule(
        "Every relative link in a document leads to a file of the repository",
        because: "a reader who follows it finds nothing",
        caught: [
            SourceFile(path: "README.md", text: "See [this](Sources/Missing.md)."),
            SourceFile(path: "Bindings/ObjectiveC/README.md", text: "[a](../Missing.md)"),
            SourceFile(path: "README.md", text: "![chart](missing.svg)"),
        ],
        passed: [
            SourceFile(path: "README.md", text: "[a](SECURITY.md) [b](https://example.com/a.md) [c](#examples) `[d](e.md)`"),
            SourceFile(path: "Bindings/ObjectiveC/README.md", text: "[a](../../README.md#examples)"),
            SourceFile(path: "Sources/Valet/A.swift", text: "[a](b.md)"),
        ],
        includesOtherTexts: true,
        eachFile: { file in
            guard file.path.hasSuffix(".md") else { return [] }
            let folder = Repository.root.appending(path: file.path).deletingLastPathComponent()
            return file.documentLines.flatMap { index, line in
                line.matches(of: /\]\(([^)#:]+)(?:#[^)]*)?\)/).filter { link in
                    !FileManager.default.fileExists(atPath: folder.appending(path: String(link.1)).standardizedFileURL.path)
                }
                .map { file.violation(line: index, "\($0.1) does not exist") }
            }
        }
    ),
    Rule(
        "Every <doc:> link, and every article that a document names as one of a module, is in the catalog of that module",
        because: "a reader who looks for it finds nothing",
        caught: [
            [
                SourceFile(path: "Sources/A/A.docc/B.md", text: "# B\n\nSee <doc:C>."),
                SourceFile(path: "Sources/D/D.docc/C.md", text: "# C"),
            ],
            [
                SourceFile(path: "Sources/A/A.docc/B.md", text: "* The article\n  \"C\" of `D` says more."),
                SourceFile(path: "Sources/D/D.docc/C.md", text: "# Sea"),
            ],
        ],
        passed: [
            [
                SourceFile(path: "Sources/A/A.docc/B.md", text: "# B\n\nSee <doc:C>."),
                SourceFile(path: "Sources/A/A.docc/C.md", text: "# C"),
            ],
            [
                SourceFile(path: "Sources/A/A.docc/B.md", text: "The article \"Long title\"\nof `D` says more."),
                SourceFile(path: "Sources/D/D.docc/C.md", text: "# Long title"),
            ],
        ],
        includesOtherTexts: true,
        violations: { files in
            let documents = files.filter { $0.path.hasSuffix(".md") }
            let paths = Set(documents.map(\.path))
            /// The titles of the articles of each module.
            var titles: [String: Set<String>] = [:]
            for document in documents {
                guard let module = document.target, let title = document.lines.first else { continue }
                titles[module, default: []].insert(String(title.dropFirst(2)))
            }
            return documents.flatMap { document in
                let folder = document.path.split(separator: "/").dropLast().joined(separator: "/")
                let links = document.documentLines.filter { $0.line.hasBytes(of: "<doc:") }.flatMap { index, line in
                    line.matches(of: /<doc:([^>]+)>/).filter { !paths.contains("\(folder)/\($0.1).md") }
                        .map { document.violation(line: index, "there is no article \($0.1) in \(folder)") }
                }
                let text = document.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                let names = text.matches(of: /[Tt]he article "([^"]+)" of (?:the command )?`(\w+)`/).filter { match in
                    let module = match.2 == "valet" ? "ValetCLI" : String(match.2)
                    return titles[module]?.contains(String(match.1)) != true
                }
                return links + names.map { document.violation("there is no article \"\($0.1)\" of \($0.2)") }
            }
        }
    ),
]

extension SourceFile {
    /// The lines of a document outside of code blocks, without code in backquotes, and their indices.
    fileprivate var documentLines: [(index: Int, line: String)] {
        var isCode = false
        return lines.enumerated().compactMap { index, line in
            if line.hasPrefix("```") { isCode.toggle() }
            return isCode ? nil : (index, line.hasBytes(of: "`") ? line.replacing(/`[^`]*`/, with: "") : line)
        }
    }
}
