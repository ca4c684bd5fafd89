// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Crypto
import Foundation
import Glibc
import KeychainEngine
import KeychainTestSupport
import Testing

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

/// A search that finds nothing proves something only when it would have found it.
@Suite("The search for leaks")
struct LeakSearchTests {
    static let text = "Druidia's shield: 12345"
    static let search = LeakSearch(texts: [text])

    @Test("Every form of a text is found where it was planted, and only there", arguments: search.patterns)
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

    @Test("A temporary file that was unlinked at once is found while it is open")
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

@Suite("What lies on the disk tells nothing", .blocking)
struct LeakTests {
    private let search = LeakSearch(texts: Marker.allCases.map(\.rawValue))

    @Test("No key, name, group, label or value, present, overwritten, removed or set aside, is in any file of a keychain in any form")
    func nothingReadable() throws {
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

            // What cannot be read any more is set aside when it is written over.
            try Self.damageRows(home + "/keychain.db")
            child.send("again")
            var line = try child.readLine()
            // The log says what was set aside.
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

@Suite("What is logged and what errors say tells nothing", .blocking)
struct LogLeakTests {
    private let search = LeakSearch(texts: Marker.allCases.map(\.rawValue))

    /// All that a process says that stores, reads, fails, locks and unlocks, with rows damaged in between.
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

    @Test("No value, passcode or attribute is in the log at any level, nor in any error, in any form")
    func nothingTold() throws {
        let text = try talk()
        let hits = search.hits(inText: text)
        #expect(hits.isEmpty, "\(hits)")
        // It did talk: of wrong requests, of the lock, of wrong passcodes and of damage.
        for said in ["(-50)", "(-25308)", "(-26275)", "the passcode is wrong", "debug keychain"] { #expect(text.contains(said), "\(said)") }
    }

    @Test("One value in one line of the log is found")
    func planted() throws {
        #expect(Set(try search.hits(inText: talk(["leak"])).map(\.pattern.text)) == [Marker.value.rawValue])
    }
}
