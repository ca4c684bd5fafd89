// SPDX-License-Identifier: Apache-2.0
import Foundation

/// One setting in a file of another program, whose other lines stay as they are.
///
/// Source: the file formats of KConfig and of GLib's key files: lines `[group]` and `key=value`.
struct SettingsFile {
    private let group: String
    private let key: String
    private(set) var lines: [Substring]

    init(_ text: String, group: String, key: String) {
        self.group = "[\(group)]"
        self.key = key
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var text: String { lines.joined(separator: "\n") }

    /// Nil without the setting.
    var value: String? {
        get { index.map { String(lines[$0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)[1]) } }
        set {
            switch (index, newValue) {
            case (let index?, let value?): lines[index] = "\(key)=\(value)"
            case (let index?, nil): lines.remove(at: index)
            case (nil, let value?): insert(value)
            case (nil, nil): break
            }
        }
    }

    /// The line of the setting.
    private var index: Int? {
        guard let start = lines.firstIndex(where: { Self.trimmed($0) == group }) else { return nil }
        return lines[(start + 1)...].prefix { !$0.hasPrefix("[") }.firstIndex {
            let parts = $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 && Self.trimmed(parts[0]) == key
        }
    }

    private mutating func insert(_ value: String) {
        if let start = lines.firstIndex(where: { Self.trimmed($0) == group }) {
            lines.insert("\(key)=\(value)", at: start + 1)
            return
        }
        if lines == [""] { lines = [] }
        if lines.last == "" { lines.removeLast() }
        lines += (lines.isEmpty ? [] : [""]) + [Substring(group), "\(key)=\(value)", ""]
    }

    private static func trimmed(_ line: Substring) -> String { line.trimmingCharacters(in: .whitespaces) }
}

/// A setting to change.
struct Setting {
    let path: String
    let group: String
    let key: String
    /// The content of the file if it does not exist.
    var initialText = ""
    /// Returns the value for the former one; nil to leave it.
    let value: (_ former: String?) -> String?

    func file(_ text: String) -> SettingsFile { SettingsFile(text, group: group, key: key) }
}
