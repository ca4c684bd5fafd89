// SPDX-License-Identifier: Apache-2.0
import Contracts
import Crypto
import Foundation
import Glibc
import KeychainEngine
import KeychainTestSupport
import Testing

/// Searches files for known texts, in plain form and in common encodings and digests.
struct LeakSearch {
    /// One encoding or digest of a text.
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

    /// Texts must have twelve bytes or more: shorter ones would be found by chance.
    init(texts: [String]) {
        patterns = texts.flatMap(Self.patterns)
    }

    /// Returns every pattern found in the file.
    func hits(inFile path: String) throws -> [Hit] {
        hits(in: try Data(contentsOf: URL(filePath: path)), place: path)
    }

    /// Returns every pattern found in any file below `directory`, or in the name of one.
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

    /// Returns every pattern found in the regular files that a process has open, including unlinked temporary files.
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

    /// Returns every pattern found in the output of a process.
    func hits(inText text: String) -> [Hit] {
        hits(in: Data(text.utf8), place: "output")
    }

    private func hits(in data: Data, place: String) -> [Hit] {
        // Both buffers outlive the call. Foundation's own search takes several times as long.
        unsafe data.withUnsafeBytes { data in
            patterns.filter { unsafe data.contains(bytes: Array($0.bytes)) }.map { Hit(place: place, pattern: $0) }
        }
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

    /// Returns the part of the base64 text that does not depend on neighboring bytes, for each alignment and both alphabets.
    private static func base64(of value: Data) -> [(String, Data)] {
        (0..<3).flatMap { alignment -> [(String, Data)] in
            let before = [0, 2, 3][alignment]
            let padded = Data(count: alignment) + value
            let encoded = padded.base64EncodedString().filter { $0 != "=" }
            // Unless the text ends on a boundary, the last character also encodes bits of the following byte.
            let certain = encoded.dropFirst(before).dropLast(padded.count % 3 == 0 ? 0 : 1)
            let forFileNames = String(certain).replacing("+", with: "-").replacing("/", with: "_")
            let standard = ("base64 at \(alignment)", Data(certain.utf8))
            return forFileNames == certain ? [standard] : [standard, ("URL base64 at \(alignment)", Data(forFileNames.utf8))]
        }
    }
}

/// A search that finds nothing is evidence only if it can find planted texts.
@Suite("The search for leaks")
struct LeakSearchTests {
    static let text = "Druidia's shield: 12345"
    static let search = LeakSearch(texts: [text])

    @Test("Every encoding of a planted text is found in its file, and in no other", arguments: search.patterns)
    func findsPlantedForm(_ pattern: LeakSearch.Pattern) throws {
        try withTemporaryDirectory { directory in
            let noise = Data((0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 13) })
            try (noise + pattern.bytes + noise).write(to: URL(filePath: directory + "/planted"))
            try noise.write(to: URL(filePath: directory + "/clean"))
            let hits = try Self.search.hits(below: directory)
            #expect(hits.contains(LeakSearch.Hit(place: directory + "/planted", pattern: pattern)))
            #expect(!hits.contains { $0.place.hasSuffix("clean") })
        }
    }

    @Test("Base64 of a longer value that contains the text is found at every alignment", arguments: 0..<12, 0..<4)
    func findsBase64InContext(before: Int, after: Int) throws {
        try withTemporaryDirectory { directory in
            let value = Data(repeating: 0xfb, count: before) + Data(Self.text.utf8) + Data(repeating: 0xf7, count: after)
            try value.base64EncodedData().write(to: URL(filePath: directory + "/planted"))
            #expect(try !Self.search.hits(below: directory).isEmpty)
        }
    }

    @Test("A text in the name of a file is found")
    func findsName() throws {
        try withTemporaryDirectory { directory in
            let search = LeakSearch(texts: ["a-telling-account-name"])
            try Data().write(to: URL(filePath: directory + "/a-telling-account-name.db"))
            #expect(try search.hits(below: directory).count == 1)
        }
    }

    @Test("A text in an unlinked file is found while the file is open")
    func findsUnlinkedFile() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/temporary"
            try Data(Self.text.utf8).write(to: URL(filePath: path))
            let child = try ChildProcess(
                "/bin/sh", ["-c", #"exec 3<"$1"; rm "$1"; echo ready; read line"#, "sh", path], environment: ["PATH": "/usr/bin:/bin"])
            #expect(try child.readLine() == "ready")
            #expect(try Self.search.hits(below: directory).isEmpty)
            #expect(try !Self.search.hits(inFilesOpenIn: child.processID).isEmpty)
            child.closeInput()
        }
    }
}

@Suite("Files of a keychain contain no plaintext", .blocking)
struct LeakTests {
    private let search = LeakSearch(texts: Marker.allCases.map(\.rawValue))

    @Test("No key, name, group, label, or value is in any file in any encoding: present, overwritten, removed, or quarantined")
    func noLeakInFiles() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let entitlements = directory + "/test.entitlements"
            let groups = ["keychain-access-groups": [Marker.group.rawValue]]
            try PropertyListSerialization.data(fromPropertyList: groups, format: .xml, options: 0).write(to: URL(filePath: entitlements))
            #expect(try search.hits(inFile: entitlements).map(\.pattern.text) == [Marker.group.rawValue], "the search must be able to find")

            let child = try ChildProcess(
                BuiltProgram.path(of: "KeychainTestChild"), ["leave-traces"],
                environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_ENTITLEMENTS": entitlements])
            #expect(try child.readLine() == "ready")
            try expectNothing(home, child)

            // A row that cannot be read is quarantined when it is replaced.
            try Self.damageRows(home + "/keychain.db")
            child.send("again")
            var line = try child.readLine()
            // The log names the quarantined items.
            while let text = line, text != "ready" { line = try child.readLine() }
            #expect(line == "ready")
            #expect(try Self.quarantinedCount(home + "/keychain.db") > 0)
            try expectNothing(home, child)

            child.closeInput()
            #expect(try child.waitUntilEnded() == .exited(0))
            #expect(try search.hits(below: home).isEmpty)
        }
    }

    private func expectNothing(_ home: String, _ child: ChildProcess) throws {
        let names = try FileSnapshot(of: home).names
        #expect(names.contains("keychain.db") && names.contains("keychain.db-wal") && names.contains("keychain.db-shm"))
        #expect(try search.hits(below: home).isEmpty)
        #expect(try search.hits(inFilesOpenIn: child.processID).isEmpty)
    }

    private static func damageRows(_ path: String) throws {
        let database = try RawDatabase(path)
        try database.execute("UPDATE items SET tag = zeroblob(length(tag)), sealed_secret = zeroblob(length(sealed_secret))")
    }

    private static func quarantinedCount(_ path: String) throws -> Int {
        try RawDatabase(path).integer("SELECT count(*) FROM quarantine")
    }
}

@Suite("Logs and errors contain no plaintext", .blocking)
struct LogLeakTests {
    private let search = LeakSearch(texts: Marker.allCases.map(\.rawValue))

    /// Returns the output of a process that stores, reads, fails, locks, and unlocks, with rows damaged in between.
    private func talk(_ options: [String] = []) throws -> String {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let entitlements = directory + "/test.entitlements"
            let groups = ["keychain-access-groups": [Marker.group.rawValue]]
            try PropertyListSerialization.data(fromPropertyList: groups, format: .xml, options: 0).write(to: URL(filePath: entitlements))
            try FileManager.default.createDirectory(
                atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            _ = try LocalKeychain.withCheapPasscode(home: home)
            let child = try ChildProcess(
                BuiltProgram.path(of: "KeychainTestChild"), ["talk-of-everything"] + options,
                environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_ENTITLEMENTS": entitlements])
            while let line = try child.readLine(), line != "ready" {}
            try RawDatabase(home + "/keychain.db").execute("UPDATE items SET sealed_secret = zeroblob(length(sealed_secret))")
            child.send("again")
            while let line = try child.readLine(), line != "ready" {}
            child.closeInput()
            let rest = try child.readToEnd()
            #expect(try child.waitUntilEnded() == .exited(0))
            return (child.linesRead + [rest]).joined(separator: "\n")
        }
    }

    @Test("No value, passcode, or attribute is in the log at any level or in any error, in any encoding")
    func noLeakInLogs() throws {
        let text = try talk()
        let hits = search.hits(inText: text)
        #expect(hits.isEmpty, "\(hits)")
        // The child logged invalid requests, the lock, wrong passcodes, and damage.
        for said in ["(-50)", "(-25308)", "(-26275)", "(-25293)", "debug keychain"] { #expect(text.contains(said), "\(said)") }
    }

    @Test("The search finds a single value in one line of the log")
    func planted() throws {
        #expect(Set(try search.hits(inText: talk(["leak"])).map(\.pattern.text)) == [Marker.value.rawValue])
    }
}
