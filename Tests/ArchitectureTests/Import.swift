// SPDX-License-Identifier: Apache-2.0

/// An import declaration.
struct Import: Sendable {
    /// The top-level module: `Foundation` of `import struct Foundation.Data`.
    let module: String
    let isExported: Bool
    /// Index of the line.
    let line: Int
}

extension SourceFile {
    private static let modifiers: Set<String> = [
        "public", "package", "internal", "fileprivate", "private", "@testable", "@_exported", "@preconcurrency", "@_implementationOnly",
        "@_spi", "unsafe", "@safe",
    ]
    private static let kinds: Set<String> = ["struct", "class", "enum", "protocol", "typealias", "func", "let", "var"]

    var imports: [Import] {
        code.enumerated().compactMap { index, line in
            guard line.contains("import ") else { return nil }
            var words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
            var isExported = false
            while let first = words.first, Self.modifiers.contains(first) {
                isExported = isExported || first == "@_exported"
                words.removeFirst()
            }
            guard words.first == "import" else { return nil }
            words.removeFirst()
            if let kind = words.first, Self.kinds.contains(kind) { words.removeFirst() }
            guard let path = words.first, let module = path.split(separator: ".").first else { return nil }
            return Import(module: String(module), isExported: isExported, line: index)
        }
    }
}
