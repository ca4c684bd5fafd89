// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import Glibc

/// Looks for known texts in files, as they are and in every form in which a careless program would leave them.
struct LeakSearch {
    /// One form in which a text can be told from a file.
    struct Pattern: Hashable, CustomStringConvertible {
        let text: String
        let form: String
        let bytes: Data

        var description: String { "\(text) as \(form)" }
    }

    /// A place where a text was found.
    struct Hit: Hashable {
        let place: String
        let pattern: Pattern
    }

    let patterns: [Pattern]

    /// Texts shorter than twelve bytes would be found by chance in one of their forms.
    init(texts: [String]) {
        patterns = texts.flatMap(Self.patterns)
    }

    /// Every pattern that the file holds.
    func hits(inFile path: String) throws -> [Hit] {
        hits(in: try Data(contentsOf: URL(filePath: path)), place: path)
    }

    /// Every pattern that any file below `directory` holds, and the names of the files themselves.
    func hits(below directory: String) throws -> [Hit] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
        return try names.flatMap { name in
            let path = directory + "/" + name
            var isDirectory: ObjCBool = false
            // `isDirectory` is ours.
            _ = unsafe FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
            let inName = hits(in: Data(name.utf8), place: "the name of \(path)")
            return isDirectory.boolValue ? inName : inName + (try hits(inFile: path))
        }
    }

    /// Every pattern in the regular files that a process has open, with or without a name: temporary files are often unlinked at once.
    func hits(inFilesOpenIn processID: pid_t) throws -> [Hit] {
        let descriptors = "/proc/\(processID)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: descriptors).flatMap { number -> [Hit] in
            let path = descriptors + "/" + number
            var information = stat()
            // `information` is ours.
            guard unsafe stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return [] }
            return try hits(inFile: path)
        }
    }

    /// Every pattern in what a process said.
    func hits(inText text: String) -> [Hit] {
        hits(in: Data(text.utf8), place: "output")
    }

    private func hits(in data: Data, place: String) -> [Hit] {
        patterns.filter { data.range(of: $0.bytes) != nil }.map { Hit(place: place, pattern: $0) }
    }

    private static func patterns(of text: String) -> [Pattern] {
        let plain = Data(text.utf8)
        let digests = [("SHA-1", Data(Insecure.SHA1.hash(data: plain))), ("SHA-256", Data(SHA256.hash(data: plain)))]
        let utf16 = [
            ("UTF-16LE", text.utf16.reduce(into: Data()) { $0 += [UInt8($1 & 0xff), UInt8($1 >> 8)] }),
            ("UTF-16BE", text.utf16.reduce(into: Data()) { $0 += [UInt8($1 >> 8), UInt8($1 & 0xff)] }),
        ]
        let values = [("plain", plain)] + digests + utf16
        return values.flatMap { name, value in
            [(name, value)] + hexadecimal(of: value).map { ("\(name), \($0)", $1) } + base64(of: value).map { ("\(name), \($0)", $1) }
        }
        .map { Pattern(text: text, form: $0, bytes: $1) }
    }

    private static func hexadecimal(of value: Data) -> [(String, Data)] {
        let digits = value.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        return [("hexadecimal", Data(digits.utf8)), ("upper-case hexadecimal", Data(digits.uppercased().utf8))]
    }

    /// What of the base64 text does not depend on the bytes around, at each of the three alignments; both alphabets.
    private static func base64(of value: Data) -> [(String, Data)] {
        (0..<3).flatMap { alignment -> [(String, Data)] in
            let before = [0, 2, 3][alignment]
            let padded = Data(count: alignment) + value
            let encoded = padded.base64EncodedString().filter { $0 != "=" }
            // The last character holds bits of what follows, unless the text ends on a boundary.
            let certain = encoded.dropFirst(before).dropLast(padded.count % 3 == 0 ? 0 : 1)
            let forFileNames = String(certain).replacing("+", with: "-").replacing("/", with: "_")
            let standard = ("base64 at \(alignment)", Data(certain.utf8))
            return forFileNames == certain ? [standard] : [standard, ("URL base64 at \(alignment)", Data(forFileNames.utf8))]
        }
    }
}
