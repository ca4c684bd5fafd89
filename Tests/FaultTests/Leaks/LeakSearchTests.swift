// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Testing

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
