// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The members of a JSON object, as `valet export --format json` writes them, under their names.
struct JSONSource: SecretSource {
    let file: SourceFile

    func read() throws(CommandFailure) -> SourceContent {
        let text = Data(try file.text().utf8)
        // The decoder's error may quote the text.
        guard let members = try? JSONDecoder().decode([String: String].self, from: text) else {
            throw CommandFailure(
                .usage, "\(file.name) is not a JSON object whose members are all text; nothing was stored",
                advice: "Give a file of `valet export --format json`, or of the form {\"KEY\": \"SECRET\"}.")
        }
        // The decoder takes one of the two values, also of names that differ only in their Unicode normalization.
        if let name = JSONNames.firstRepeated(in: [UInt8](text)) {
            throw CommandFailure(
                .usage, "\(ItemListing.escapingUnprintable(name)) is given twice in \(file.name); nothing was stored",
                advice: "Remove or rename one of the two.")
        }
        var content = SourceContent(removalAdvice: file.removalAdvice())
        for (key, value) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            try content.add(FoundSecret(key: key, value: Data(value.utf8), place: "object"))
        }
        return content
    }
}
