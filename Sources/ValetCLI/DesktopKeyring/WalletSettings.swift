// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The settings of KWallet, in which the Secret Service of Plasma can be turned off.
///
/// Source: KWallet, src/kwalletsettings.kcfg; KConfig's file format: lines `[group]` and `key=value`.
struct WalletSettings {
    private static let group = "[org.freedesktop.secrets]"
    private static let key = "apiEnabled"

    private(set) var lines: [Substring]

    init(_ text: String) { lines = text.split(separator: "\n", omittingEmptySubsequences: false) }

    var text: String { lines.joined(separator: "\n") }

    /// Whether Plasma may be the keyring; nil without the setting.
    var isEnabled: String? {
        get { index.map { String(lines[$0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)[1]) } }
        set {
            switch (index, newValue) {
            case (let index?, let value?): lines[index] = "\(Self.key)=\(value)"
            case (let index?, nil): lines.remove(at: index)
            case (nil, let value?): insert(value)
            case (nil, nil): break
            }
        }
    }

    /// The line of the setting.
    private var index: Int? {
        guard let start = lines.firstIndex(where: { Self.trimmed($0) == Self.group }) else { return nil }
        return lines[(start + 1)...].prefix { !$0.hasPrefix("[") }.firstIndex {
            let parts = $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 && Self.trimmed(parts[0]) == Self.key
        }
    }

    private mutating func insert(_ value: String) {
        if let start = lines.firstIndex(where: { Self.trimmed($0) == Self.group }) {
            lines.insert("\(Self.key)=\(value)", at: start + 1)
            return
        }
        if lines == [""] { lines = [] }
        if lines.last == "" { lines.removeLast() }
        lines += (lines.isEmpty ? [] : [""]) + [Substring(Self.group), "\(Self.key)=\(value)", ""]
    }

    private static func trimmed(_ line: Substring) -> String { line.trimmingCharacters(in: .whitespaces) }
}
