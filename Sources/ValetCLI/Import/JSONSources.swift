// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The passwords and tokens in Docker's `config.json`, under `REGISTRY/USER`, or `REGISTRY` for an identity token.
///
/// Source: Docker's reference of `docker login`. Registries whose secret is kept by a credential helper are named and left out.
struct DockerSource: SecretSource {
    let file: SourceFile
    var name: String { file.name }

    private struct Configuration: Decodable {
        let auths: [String: Login]?
        let credsStore: String?
        let credHelpers: [String: String]?
    }

    private struct Login: Decodable {
        let auth: String?
        let identitytoken: String?
        let registrytoken: String?
        let username: String?
        let password: String?
    }

    func read() throws(CommandFailure) -> SourceContent {
        let configuration: Configuration
        let repeatedName: String?
        do {
            let text = Data(try file.text().utf8)
            configuration = try JSONDecoder().decode(Configuration.self, from: text)
            repeatedName = JSONNames.firstRepeated(in: [UInt8](text))
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            // The decoder's error may quote the text.
            throw CommandFailure(
                .usage, "\(file.name) is not a configuration of Docker; nothing was stored",
                advice: "Give the path of its config.json, usually ~/.docker/config.json.")
        }
        guard configuration.auths != nil || configuration.credHelpers != nil || configuration.credsStore != nil else {
            throw CommandFailure(
                .usage, "\(file.name) has none of auths, credHelpers, and credsStore, as a configuration of Docker; nothing was stored",
                advice: "Check that it is the right file, usually ~/.docker/config.json.")
        }
        if let repeatedName {
            throw CommandFailure(
                .usage, "\(ItemListing.escapingUnprintable(repeatedName)) is given twice in \(file.name); nothing was stored",
                advice: "Remove one of the two.")
        }
        var content = SourceContent(
            removalAdvice: "The file still contains the secrets, and Docker reads them only there. `docker logout REGISTRY` removes one.")
        let auths = configuration.auths ?? [:]
        let helpers = configuration.credHelpers ?? [:]
        if auths.isEmpty, let store = configuration.credsStore, !store.isEmpty {
            content.omissions.append(
                .init(note: "all registries: their secrets are kept by docker-credential-\(ItemListing.escapingUnprintable(store))"))
        }
        for registry in Set(auths.keys).union(helpers.keys).sorted() {
            let name = ItemListing.escapingUnprintable(registry)
            let login = auths[registry]
            if let token = [login?.identitytoken, login?.registrytoken].compactMap(\.self).first(where: { !$0.isEmpty }) {
                try content.add(FoundSecret(key: registry, value: Data(token.utf8), place: name))
            } else if let login, let (user, password) = try userAndPassword(login, name) {
                try content.add(FoundSecret(key: "\(registry)/\(user)", value: Data(password.utf8), place: name))
            } else if let helper = helpers[registry] ?? configuration.credsStore {
                content.omissions.append(
                    .init(note: "\(name): its secret is kept by docker-credential-\(ItemListing.escapingUnprintable(helper))"))
            } else {
                content.omissions.append(.init(note: "\(name): it has no secret", isEmpty: true))
            }
        }
        return content
    }

    private func userAndPassword(_ login: Login, _ place: String) throws(CommandFailure) -> (String, String)? {
        if let user = login.username, let password = login.password, !password.isEmpty { return (user, password) }
        guard let auth = login.auth, !auth.isEmpty else { return nil }
        // Some versions end the password with NUL bytes.
        guard let decoded = Data(base64Encoded: auth), let text = String(validating: decoded, as: UTF8.self),
            let colon = text.firstIndex(of: ":")
        else {
            throw CommandFailure(
                .usage, "\(file.name), \(place): auth is not USER:PASSWORD in base64; nothing was stored",
                advice: "Log in again with `docker login`, or remove the entry.")
        }
        var password = text[text.index(after: colon)...]
        while password.last == "\0" { password.removeLast() }
        return (String(text[..<colon]), String(password))
    }
}

/// The members of a JSON object, as `valet export --format json` writes them, under their names.
struct JSONSource: SecretSource {
    let file: SourceFile
    var name: String { file.name }

    func read() throws(CommandFailure) -> SourceContent {
        var members = JSONMembers(try file.utf8Text())
        if let problem = members.read() {
            throw CommandFailure(
                .usage, "\(file.name), line \(problem.line): \(problem.reason); nothing was stored",
                advice: "Give a file of `valet export --format json`, or of the form {\"KEY\": \"SECRET\"}.")
        }
        var content = SourceContent(removalAdvice: file.removalAdvice(), secrets: SecretList(members.bytes))
        for entry in members.entries { try content.add(entry) }
        return content
    }
}

/// Reads a JSON object whose members are all text.
///
/// There may be a million. So each member takes the place of text that was read before: what a string in quotes stands for is shorter than its text.
private struct JSONMembers {
    /// The names and values of the members that were read, and behind them other text.
    private(set) var bytes: [UInt8]
    /// In their order, also those with one name.
    private(set) var entries: [SecretList.Entry] = []
    private var index = 0
    /// The number of bytes that the members take.
    private var byteCount = 0
    private var line = 1
    private let decoder = JSONDecoder()

    init(_ text: [UInt8]) {
        bytes = text
    }

    /// Reads all members, or returns the line and the reason, which has no value in it, why that is not possible.
    mutating func read() -> (line: Int, reason: String)? {
        guard !bytes.isEmpty else { return found("it is empty") }
        guard take("{") else { return found("there is no { of an object") }
        guard !take("}") else { return end() }
        repeat {
            guard let name = string() else { return found("the name of a member is expected here, in double quotes") }
            // Without a colon it may be a value, which is never shown.
            guard take(":") else { return found("there is no colon after the name of a member") }
            let line = line
            guard let value = string() else { return found("the value of \(shown(name)) is not text in double quotes") }
            guard let entry = SecretList.Entry(name, valueByteCount: value.count, line: line) else { return found("it is too large") }
            entries.append(entry)
            guard !take("}") else { return end() }
            guard take(",") else { return found("there is no comma or } after the value of \(shown(name))") }
            guard !take("}") else { return found("there is a comma before the }, where no member follows") }
        } while true
    }

    private mutating func end() -> (line: Int, reason: String)? {
        skipSpaces()
        return index == bytes.count ? nil : found("there is text after the object")
    }

    private func found(_ reason: String) -> (line: Int, reason: String) { (line, reason) }

    private func shown(_ name: Range<Int>) -> String { ItemListing.escapingUnprintable(String(decoding: bytes[name], as: UTF8.self)) }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpaces()
        guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    /// Reads a string, or nothing if it is not valid, and returns where its text is now.
    private mutating func string() -> Range<Int>? {
        skipSpaces()
        guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { return nil }
        var end = index + 1
        var isPlain = true
        while end < bytes.count, bytes[end] != UInt8(ascii: "\"") {
            let isEscaped = bytes[end] == UInt8(ascii: "\\")
            isPlain = isPlain && !isEscaped && bytes[end] >= UInt8(ascii: " ")
            end += isEscaped ? 2 : 1
        }
        guard end < bytes.count else { return nil }
        let start = byteCount
        if isPlain {
            for position in index + 1..<end { append(bytes[position]) }
        } else {
            // Its error may quote the text.
            guard let text = try? decoder.decode(String.self, from: Data(bytes[index...end])), text.utf8.count < end - index else {
                return nil
            }
            for byte in text.utf8 { append(byte) }
        }
        index = end + 1
        return start..<byteCount
    }

    private mutating func append(_ byte: UInt8) {
        bytes[byteCount] = byte
        byteCount += 1
    }

    private mutating func skipSpaces() {
        while index < bytes.count, " \t\r\n".utf8.contains(bytes[index]) {
            // Nowhere else in valid JSON is a line feed.
            if bytes[index] == UInt8(ascii: "\n") { line += 1 }
            index += 1
        }
    }
}

/// The names of members in a JSON text.
enum JSONNames {
    /// Returns a name that an object of `text` has twice; nil if there is none.
    ///
    /// Decoders take one of the two values and ignore the other. `text` must be valid JSON.
    static func firstRepeated(in text: [UInt8]) -> String? {
        /// The names of each open object, from the outermost; nil for an array.
        var names: [Set<String>?] = []
        var isName = false
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "{"):
                names.append([])
                isName = true
            case UInt8(ascii: "["):
                names.append(nil)
                isName = false
            case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = names.popLast()
            case UInt8(ascii: ","): isName = if let last = names.last { last != nil } else { false }
            case UInt8(ascii: "\""):
                let start = index
                index += 1
                while index < text.count, text[index] != UInt8(ascii: "\"") { index += text[index] == UInt8(ascii: "\\") ? 2 : 1 }
                if isName, index < text.count {
                    let name = name(text[start...index])
                    if names[names.count - 1]?.insert(name).inserted == false { return name }
                }
                isName = false
            default: break
            }
            index += 1
        }
        return nil
    }

    /// Returns the text of a string in quotes.
    private static func name(_ quoted: ArraySlice<UInt8>) -> String {
        if quoted.contains(UInt8(ascii: "\\")), let name = try? JSONDecoder().decode(String.self, from: Data(quoted)) { return name }
        return String(decoding: quoted.dropFirst().dropLast(), as: UTF8.self)
    }
}
