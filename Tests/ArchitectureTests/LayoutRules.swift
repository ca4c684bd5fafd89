// SPDX-License-Identifier: Apache-2.0

/// Files that are long because they are tables of data, with what they hold.
private let dataTables: Set<String> = []

/// Files that bear the name of what is done in them, since they define nothing by that name.
private let describedByName: Set<String> = [
    "Sources/KeychainServices/Exports.swift",  // only imports
    "Sources/KeychainCore/Items/CanonicalBytes.swift",  // the two halves of an encoding, on [UInt8]
]

private let lineCeiling = 800

let layoutRules: [Rule] = [
    Rule(
        "No file is longer than \(lineCeiling) lines, tables of data apart",
        because: "one file holds one idea, and a longer one holds several",
        caught: [SourceFile(path: "Sources/Valet/A.swift", text: String(repeating: "\n", count: lineCeiling + 1))],
        passed: [SourceFile(path: "Sources/Valet/A.swift", text: String(repeating: "\n", count: lineCeiling - 1))],
        eachFile: { file in
            guard file.lines.count > lineCeiling, !dataTables.contains(file.path) else { return [] }
            return [file.violation("has \(file.lines.count) lines")]
        }
    ),
    Rule(
        "A file bears the name of something it defines, or of the type it extends: `Type+Aspect.swift`",
        because: "one finds a declaration by its file",
        caught: [
            SourceFile(path: "Sources/Valet/Helpers.swift", text: "struct Sandbox {}"),
            SourceFile(path: "Sources/Valet/Data+Hex.swift", text: "extension String {}"),
            SourceFile(path: "Sources/Valet/Item.swift", text: "// struct Item {}\nstruct Itemised {}"),
            SourceFile(path: "Sources/Valet/Placeholder.swift", text: "// SPDX-License-Identifier: Apache-2.0"),
        ],
        passed: [
            SourceFile(path: "Sources/Valet/Sandbox.swift", text: "package final class Sandbox {}"),
            SourceFile(path: "Sources/Valet/Data+Hex.swift", text: "extension Data {}"),
            SourceFile(path: "Sources/Valet/Array+Wipe.swift", text: "extension [UInt8] {}"),
            SourceFile(path: "Sources/SecurityAPI/SecItem.swift", text: "public func SecItemAdd() {}"),
            SourceFile(path: "Sources/KeychainCore/Requests.swift", text: "struct AddRequest {}\nstruct DeleteRequest {}"),
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "import Foundation"),
            SourceFile(path: "Tests/KeychainTestChild/main.swift", text: "run()"),
        ],
        eachFile: { file in
            guard file.target != nil, file.stem != "main", !describedByName.contains(file.path) else { return [] }
            let name = file.stem.split(separator: "+", maxSplits: 1).first.map(String.init) ?? file.stem
            guard !file.definedNames.contains(where: { $0.isNamed(by: name) }) else { return [] }
            return [file.violation("defines nothing called \(name)")]
        }
    ),
    Rule(
        "The first line names the license",
        because: "a file that is copied elsewhere keeps its terms",
        caught: [SourceFile(path: "Sources/Valet/A.swift", text: "import Foundation\n// SPDX-License-Identifier: Apache-2.0")],
        passed: [SourceFile(path: "Sources/Valet/A.swift", text: "// SPDX-License-Identifier: Apache-2.0\n")],
        eachFile: { file in
            file.lines.first == "// SPDX-License-Identifier: Apache-2.0" ? [] : [file.violation(line: 0, "names no license")]
        }
    ),
    Rule(
        "Valet calls SecItem functions in one file, and so does Locksmith",
        because: "Apple's stricter coercions cannot be compiled here, so the calls that depend on them are reviewed in one place",
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
                return callers.count > 1 ? callers.map { $0.violation("calls SecItem functions, and so do other files") } : []
            }
        }
    ),
]

extension SourceFile {
    fileprivate var callsSecItem: Bool {
        code.contains { line in
            ["SecItemAdd(", "SecItemCopyMatching(", "SecItemUpdate(", "SecItemDelete("].contains { line.contains($0) }
        }
    }

    /// The names that declarations in this file introduce or extend.
    fileprivate var definedNames: [String] {
        let keywords: Set<Substring> = [
            "struct", "class", "enum", "protocol", "actor", "extension", "typealias", "func", "let", "var", "macro",
        ]
        return code.flatMap { line in
            let words = line.split(whereSeparator: { " \t".contains($0) })
            return zip(words, words.dropFirst()).filter { keywords.contains($0.0) }.map { _, name in
                name.hasPrefix("[") ? "Array" : String(name.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." })
            }
        }
    }
}

extension String {
    /// Whether a file called `name` may hold this.
    ///
    /// It may if the names are the same (a global `importRules` stands in `ImportRules.swift`), for a member type `Outer.Name`, and for
    /// families: `SecItem…` in `SecItem.swift`, `…Request` in `Requests.swift`.
    fileprivate func isNamed(by name: String) -> Bool {
        if self == name || self == name.prefix(1).lowercased() + name.dropFirst() || hasSuffix("." + name) || hasPrefix(name + ".") {
            return true
        }
        if name.hasSuffix("s"), hasSuffix(name.dropLast()) { return true }
        guard hasPrefix(name), let next = dropFirst(name.count).first else { return false }
        return next.isUppercase
    }
}
