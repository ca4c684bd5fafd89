// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainSystem

/// Something that `valet import` reads secrets from, and never changes.
protocol SecretSource {
    /// How messages call the source, such as the path of its file.
    var name: String { get }
    /// Reads all secrets, or throws an error that says where the source is wrong and shows none of its text, which may be a secret.
    func read() throws(CommandFailure) -> SourceContent
}

extension SecretSource {
    var name: String { "the source" }
}

/// What a source contains.
struct SourceContent {
    /// An entry that has no secret to store.
    struct Omission {
        /// The place and the reason, such as "line 3: EMPTY has no value".
        let note: String
        /// Whether the entry has nothing that could be stored.
        var isEmpty = false
    }

    private(set) var secrets: SecretList
    var omissions: [Omission] = []
    /// Whether nothing is lost if the source is removed.
    var isComplete: Bool { omissions.allSatisfy(\.isEmpty) }
    /// What a person can do to remove the source, for example a command.
    let removalAdvice: String

    /// The places of the other values of a key, by the index of the first one.
    private var otherPlaces: [Int: [String]] = [:]

    init(removalAdvice: String, secrets: SecretList = SecretList()) {
        self.removalAdvice = removalAdvice
        self.secrets = secrets
    }

    /// Adds a secret.
    ///
    /// The same secret may be given twice. A key with several values has to be handled by `requireOneValueForEachKey` or `omitRepeatedKeys`,
    /// because all but one would be lost.
    mutating func add(_ secret: FoundSecret) throws(CommandFailure) {
        guard let entry = secrets.copy(secret) else {
            throw CommandFailure(.usage, "the source has more than 2 GiB of secrets; nothing was stored", advice: "Import parts of it.")
        }
        try add(entry)
    }

    /// Adds a secret that is in the buffer of `secrets`; otherwise like `add(_:)` for a secret.
    mutating func add(_ entry: SecretList.Entry) throws(CommandFailure) {
        let secret = secrets.secret(entry)
        guard !secret.key.isEmpty else {
            throw CommandFailure(.usage, "\(secret.place): the key is empty; nothing was stored", advice: "Give it a name in the source.")
        }
        guard !secret.value.isEmpty else {
            omissions.append(Omission(note: "\(secret.place): \(ItemListing.escapingUnprintable(secret.key)) has no value", isEmpty: true))
            return
        }
        guard let index = secrets.add(entry) else { return }
        if secrets[index].value != secret.value { otherPlaces[index, default: []].append(secret.place) }
    }

    /// Throws if the source, which messages call `name`, has several values for a key.
    func requireOneValueForEachKey(in name: String) throws(CommandFailure) {
        guard !otherPlaces.isEmpty else { return }
        let keys = repeatedKeys.map { "\(ItemListing.escapingUnprintable($0.key)) (\(Self.enumeration($0.places, of: "places")))" }
        throw CommandFailure(
            .usage, "\(name) has several values for \(Self.enumeration(keys, of: "keys")); nothing was stored",
            advice: "Remove or rename the other entries, or add --omit-repeated to import the rest.")
    }

    /// Leaves out the keys that have several values.
    mutating func omitRepeatedKeys() {
        for (key, places) in repeatedKeys {
            let places = Self.enumeration(places, of: "places")
            omissions.append(Omission(note: "\(places): \(ItemListing.escapingUnprintable(key)) has several values"))
        }
        secrets.removeAll { otherPlaces[$0] != nil }
        otherPlaces = [:]
    }

    /// Names the first ten, and counts the others.
    private static func enumeration(_ names: [String], of nouns: String) -> String {
        names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", and \(names.count - 10) other \(nouns)" : "")
    }

    private var repeatedKeys: [(key: String, places: [String])] {
        otherPlaces.sorted { $0.key < $1.key }.map { (secrets[$0.key].key, [secrets[$0.key].place] + $0.value) }
    }
}

/// A secret of a source, with the key that it is stored under.
struct FoundSecret {
    let key: String
    let value: Data
    /// Where in the source, such as "line 3".
    let place: String
}

/// A file that a command reads, with its name and the outcome of the command for errors.
struct SourceFile {
    /// The path as it was given; "-" for standard input.
    let path: String
    /// What an error means for the command, such as "the command was not run".
    var outcome = "nothing was stored"

    private static let maximumByteCount = 64 << 20

    /// How messages call the file.
    var name: String { path == "-" ? "standard input" : ItemListing.escapingUnprintable(path) }

    /// Says how to remove the file; nothing is left in standard input or another pipe.
    ///
    /// `programs` read the file and not the keychain.
    func removalAdvice(readBy programs: String? = nil) -> String {
        guard path != "-", (try? FileStatus(of: path, followsLinks: true))?.kind == .regularFile else {
            return "The source was not changed; remove it when you no longer need it."
        }
        let need = programs.map { ", and programs such as \($0) read them only there. When none needs it, remove it" } ?? ". Remove it"
        return "The file still contains the secrets\(need) with: rm -- \(Self.quotedForShell(path))"
    }

    /// Returns the content as text without a byte-order mark.
    func text() throws(CommandFailure) -> String { String(decoding: try utf8Text(), as: UTF8.self) }

    /// Returns the content as text in UTF-8 without a byte-order mark.
    func utf8Text() throws(CommandFailure) -> [UInt8] {
        var bytes = try contents()
        if let encoding = Self.wideEncoding(of: bytes) {
            throw CommandFailure(
                .usage, "\(name) is UTF-16 text; \(outcome)", advice: "Convert it: iconv -f \(encoding) -t UTF-8")
        }
        guard (try? UTF8Span(validating: bytes.span)) != nil else {
            throw CommandFailure(
                .usage, "\(name) is not UTF-8 text; \(outcome)",
                advice: "Check that it is the right file, or convert it to UTF-8 with iconv.")
        }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        return bytes
    }

    /// Returns the name that iconv has for the encoding of UTF-16 text; nil for other text.
    ///
    /// Without a byte-order mark, an ASCII character at the beginning tells: one of its two bytes is zero. Such text is valid UTF-8.
    private static func wideEncoding(of bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) { return "UTF-16" }
        guard bytes.count >= 2 else { return nil }
        return switch (bytes[0], bytes[1]) {
        case (0, 1...): "UTF-16BE"
        case (1..., 0): "UTF-16LE"
        default: nil
        }
    }

    /// Returns the content.
    func contents() throws(CommandFailure) -> [UInt8] {
        let bytes: [UInt8]?
        do throws(Errno) {
            if path == "-" {
                bytes = try FileDescriptor.standardInput.readToEnd(byteLimit: Self.maximumByteCount)
            } else {
                // The program that writes a pipe may not have begun, and until then the pipe would look empty.
                let file = try OpenFile(path, .readWaiting, followsLinks: true)
                bytes = try file.descriptor.readToEnd(byteLimit: Self.maximumByteCount)
            }
        } catch {
            throw CommandFailure(
                error == .notFound ? .notFound : .unavailable, "cannot read \(name): \(error); \(outcome)",
                advice: "Check the path and the permissions of the file.")
        }
        guard let bytes else {
            throw CommandFailure(
                .usage, "\(name) is larger than \(Self.maximumByteCount >> 20) MiB; \(outcome)",
                advice: "Check that it is the right file.")
        }
        return bytes
    }

    static func quotedForShell(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"):
                true
            default: false
            }
        }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
