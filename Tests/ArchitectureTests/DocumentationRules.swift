// SPDX-License-Identifier: Apache-2.0

let documentationRules: [Rule] = [
    Rule(
        "Every public declaration under Sources has a doc comment",
        because: "whoever calls it has nothing else to go by: meaning, units, limits, errors",
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
                .map { file.violation(line: $0, "is public and has no doc comment") }
        }
    )
]

extension SourceFile {
    fileprivate func declaresPublic(at line: Int) -> Bool {
        let words = code[line].split(whereSeparator: { " \t".contains($0) })
        guard words.contains("public") || words.contains("open") else { return false }
        // Modifiers and attributes stand before the keyword; anything else means that `public` is used as a name.
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
