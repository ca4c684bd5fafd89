// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Valet

extension CompletionKind {
    /// The keys of the valet that is meant without options.
    static var keys: CompletionKind {
        .custom { _, _, _ in
            // In the middle of a line nobody can be told what is wrong.
            let keys = (try? storedKeys()) ?? []
            return CompletionShell.requesting == .bash ? keys.map(quotedForBash) : keys
        }
    }

    /// In order, and without those that hold a line break or what else cannot be typed: the candidates are lines.
    private static func storedKeys() throws -> [String] {
        let selected = try ValetSelection.parse([]).resolve()
        let valet = try selected.listable(reason: "")
        let keys = try CommandSession(selected.entitlements).perform { try valet.allKeys() }
        return keys.filter { ItemListing.printable($0) == $0 }.sorted()
    }

    /// Bash expands the candidates it is given, commands in them too; a key is a word and not a command.
    private static func quotedForBash(_ key: String) -> String {
        "'" + key.replacing("'", with: "'\\''") + "'"
    }
}
