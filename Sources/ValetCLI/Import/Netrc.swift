// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The passwords of a `.netrc` file, under `MACHINE/LOGIN`, or `MACHINE` without a login.
///
/// Source: the GNU inetutils manual, "The .netrc file". Words are separated by spaces and line breaks; curl and Python also read words in
/// double quotes. The words of a macro definition, up to an empty line, are skipped.
struct NetrcSource: SecretSource {
    let file: SourceFile
    var name: String { file.name }

    func read() throws(CommandFailure) -> SourceContent {
        var content = SourceContent(removalAdvice: file.removalAdvice(readBy: "curl and git"))
        var words = NetrcWords(try file.text())
        var entry: Entry?
        while let word = try next(&words) {
            let line = words.line
            switch (word, entry != nil) {
            case ("machine", _):
                try entry?.add(to: &content)
                entry = Entry(machine: try value(of: word, &words), line: line)
            case ("default", _):
                try entry?.add(to: &content)
                entry = Entry(machine: "default", line: line)
            case ("login", true): entry?.login = try value(of: word, &words)
            case ("password", true): entry?.password = try value(of: word, &words)
            case ("account", true):
                _ = try value(of: word, &words)
                entry?.hasAccount = true
            case ("macdef", _):
                words.skipMacro()
                content.omissions.append(.init(note: "line \(line): a macro is not imported"))
            default:
                // A password with a space ends too early, in an entry. A file that begins otherwise is of another kind.
                throw failure(
                    line, "a word is not machine, default, login, password, account, or macdef",
                    advice: entry == nil
                        ? "Check that it is a netrc file, which begins with the word machine, default, or macdef." : Self.quotingAdvice)
            }
        }
        try entry?.add(to: &content)
        return content
    }

    private func value(of word: String, _ words: inout NetrcWords) throws(CommandFailure) -> String {
        guard let value = try next(&words, isValue: true) else {
            throw failure(words.line, "there is nothing after \(word)", advice: "Complete the entry, or remove it.")
        }
        return value
    }

    private func next(_ words: inout NetrcWords, isValue: Bool = false) throws(CommandFailure) -> String? {
        do throws(NetrcWords.UnclosedQuote) {
            return try words.next(allowingComment: !isValue)
        } catch {
            throw failure(error.line, "the quotes are not closed", advice: Self.quotingAdvice)
        }
    }

    private static let quotingAdvice = "Put a password that contains spaces in double quotes, with a backslash before quotes in it."

    private func failure(_ line: Int, _ reason: String, advice: String) -> CommandFailure {
        CommandFailure(.usage, "\(file.name), line \(line): \(reason); nothing was stored", advice: advice)
    }

    private struct Entry {
        let machine: String
        let line: Int
        var login: String?
        var password: String?
        var hasAccount = false

        func add(to content: inout SourceContent) throws(CommandFailure) {
            let place = "line \(line)"
            let key = login.map { "\(machine)/\($0)" } ?? machine
            try content.add(FoundSecret(key: key, value: Data((password ?? "").utf8), place: place))
            // The account is a second password, which few servers use.
            if hasAccount {
                content.omissions.append(.init(note: "\(place): the account of \(ItemListing.escapingUnprintable(key)) is not imported"))
            }
        }
    }
}

/// The words of a `.netrc` file.
private struct NetrcWords {
    struct UnclosedQuote: Error {
        let line: Int
    }

    private var rest: Substring.UnicodeScalarView
    /// The line of the last word.
    private(set) var line = 1
    private var nextLine = 1

    init(_ text: String) {
        rest = Substring(text).unicodeScalars
    }

    mutating func next(allowingComment: Bool) throws(UnclosedQuote) -> String? {
        while let scalar = rest.first, scalar.properties.isWhitespace || allowingComment && scalar == "#" {
            if scalar == "#" {
                rest = rest[(rest.firstIndex(of: "\n") ?? rest.endIndex)...]
            } else {
                removeFirst()
            }
        }
        line = nextLine
        guard let first = rest.first else { return nil }
        var word = String.UnicodeScalarView()
        guard first == "\"" else {
            while let scalar = rest.first, !scalar.properties.isWhitespace {
                word.append(scalar)
                removeFirst()
            }
            return String(word)
        }
        removeFirst()
        while let scalar = rest.first {
            removeFirst()
            if scalar == "\"" { return String(word) }
            if scalar == "\\", let escaped = rest.first {
                removeFirst()
                word.append(escaped)
            } else {
                word.append(scalar)
            }
        }
        throw UnclosedQuote(line: line)
    }

    /// Skips everything up to an empty line.
    mutating func skipMacro() {
        var isLineEmpty = false
        while let scalar = rest.first {
            removeFirst()
            if scalar == "\n" {
                if isLineEmpty { return }
                isLineEmpty = true
            } else if scalar != "\r" {
                isLineEmpty = false
            }
        }
    }

    private mutating func removeFirst() {
        if rest.removeFirst() == "\n" { nextLine += 1 }
    }
}
