// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainTestSupport
import Testing

@testable import ValetCLI

// `importing-pass.txt` runs the import with the real gpg. Here a script stands in for it, which fails in chosen ways.

@Suite("Importing from pass with a gpg that fails", .blocking)
struct PasswordStoreTests {
    /// A directory of entries, and a program `gpg`.
    private struct Store {
        let directory: String

        /// `script` has the path of the entry in `$entry`.
        init(_ directory: String, entries: [String], script: String) throws {
            self.directory = directory
            for folder in ["bin", "store"] {
                try FileManager.default.createDirectory(atPath: "\(directory)/\(folder)", withIntermediateDirectories: true)
            }
            let text = URL(filePath: "\(directory)/gpg.sh")
            try Data("#!/bin/sh\nfor entry; do :; done\n\(script)\n".utf8).write(to: text)
            // A program cannot be run while it is open for writing, and the children of other tests inherit this process's descriptors.
            let installing = try ChildProcess.run(
                "/usr/bin/install", ["-m", "700", text.path, "\(directory)/bin/gpg"], environment: ["PATH": "/usr/bin:/bin"])
            #expect(installing.ending == .exited(0))
            for entry in entries { try Data("value of \(entry)".utf8).write(to: URL(filePath: "\(directory)/store/\(entry).gpg")) }
        }

        func read(timeoutMilliseconds: UInt64 = 60_000) throws -> SourceContent {
            try PasswordStoreSource(
                directory: directory + "/store", takesFirstLineOnly: false,
                environment: ["PATH": "\(directory)/bin:/usr/bin:/bin", "COUNT": "\(directory)/count"],
                entryTimeoutMilliseconds: timeoutMilliseconds
            ).read()
        }
    }

    private func failure(script: String, timeoutMilliseconds: UInt64 = 60_000) throws -> CommandFailure? {
        try withTemporaryDirectory { directory in
            let store = try Store(directory, entries: ["a", "b"], script: script)
            return #expect(throws: CommandFailure.self) { _ = try store.read(timeoutMilliseconds: timeoutMilliseconds) }
        }
    }

    @Test("A gpg that hangs, or waits for an answer, ends with an error at the deadline")
    func stuck() throws {
        // The second one has written a secret and closed its output before it hangs.
        for script in ["exec sleep 600", "cat \"$entry\"; exec >&-; exec sleep 600"] {
            let failure = try failure(script: script, timeoutMilliseconds: 100)
            #expect(failure?.status == .unavailable && failure?.problem.hasPrefix("a: gpg did not end within ") == true)
        }
        // It has no standard input and no standard error to ask on: a question ends at once.
        #expect(try failure(script: "read answer || exit 2")?.problem == "a: gpg cannot decrypt it; nothing was stored")
        #expect(try failure(script: "test -t 2 || exit 2")?.problem == "a: gpg cannot decrypt it; nothing was stored")
    }

    @Test("An entry that is decrypted in part is not stored, and the error shows nothing of it")
    func partialOutput() throws {
        let scripts = [
            "printf swordfish; exit 2", "printf swordfish; kill -KILL $$", "case $entry in */b.gpg) exit 2; esac; cat \"$entry\"",
        ]
        for script in scripts {
            let failure = try failure(script: script)
            #expect(failure?.status == .unavailable && failure?.problem.hasSuffix("gpg cannot decrypt it; nothing was stored") == true)
            #expect(failure.map { ($0.problem + $0.advice).contains("swordfish") } == false)
        }
    }

    @Test("An entry of more than 1 MiB is refused, also if it never ends")
    func endlessOutput() throws {
        for script in ["head -c 1048577 /dev/zero", "exec cat /dev/zero"] {
            #expect(try failure(script: script)?.problem == "a: the entry is larger than 1 MiB; nothing was stored")
        }
    }

    @Test("An empty entry is listed")
    func emptyEntry() throws {
        try withTemporaryDirectory { directory in
            let content = try Store(directory, entries: ["a", "b"], script: Self.emptyScript(status: "DECRYPTION_OKAY")).read()
            #expect(content.secrets.map(\.key) == ["b"] && content.omissions.map(\.note) == ["a.gpg: a has no value"])
        }
    }

    @Test("An entry from which gpg reads no message is not empty, but damaged")
    func emptyOutput() throws {
        #expect(try failure(script: Self.emptyScript(status: "NODATA 3"))?.problem == "a: gpg cannot decrypt it; nothing was stored")
    }

    /// A script that writes nothing for the entry `a`, and the status if that is asked for.
    private static func emptyScript(status: String) -> String {
        "case \"$*\" in */b.gpg) cat \"$entry\" ;; *--status-fd*) echo '[GNUPG:] \(status)' ;; esac"
    }

    @Test("Many entries are decrypted, each one once")
    func manyEntries() throws {
        try withTemporaryDirectory { directory in
            let entries = (0..<Scale.pick(200, full: 5_000)).map { "entry\($0)" }
            let content = try Store(directory, entries: entries, script: "echo >>\"$COUNT\"; cat \"$entry\"").read()
            #expect(content.secrets.map(\.key) == entries.sorted())
            #expect(content.secrets.map(\.value) == entries.sorted().map { Data("value of \($0)".utf8) })
            #expect(try Data(contentsOf: URL(filePath: directory + "/count")).count == entries.count)
        }
    }
}
