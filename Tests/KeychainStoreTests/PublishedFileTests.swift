// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainStore
import Testing

@Suite("A file is published whole or not at all", .serialized)
struct PublishedFileTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/backup"
    }

    private func write(
        _ text: String, replacingExisting: Bool = false, hasLinks: Bool = true
    ) throws(KeychainFailure) -> CreationOutcome {
        try PublishedFile(path, hasLinks: hasLinks).write(replacingExisting: replacingExisting) { writer throws(KeychainFailure) in
            for byte in text.utf8 { try writer.append([byte]) }
            #expect(!FileManager.default.fileExists(atPath: path) || replacingExisting, "it has its name before it is whole")
        }
    }

    private var text: String? { FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } }

    @Test("It is there afterwards, for its owner alone, and nothing beside it", arguments: [true, false])
    func published(hasLinks: Bool) throws {
        #expect(try write("whole", hasLinks: hasLinks) == .created)
        #expect(text == "whole")
        #expect(try directory.names == ["backup"])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("A file that is there is left as it is", arguments: [true, false])
    func notReplaced(hasLinks: Bool) throws {
        try write("first").mustBeCreated()
        #expect(try write("second", hasLinks: hasLinks) == .alreadyThere)
        #expect(text == "first")
        #expect(try directory.names == ["backup"])
    }

    @Test("Nor is one that came meanwhile", arguments: [true, false])
    func notReplacedLate(hasLinks: Bool) throws {
        let file = try PublishedFile(path, hasLinks: hasLinks)
        let outcome = try file.write { writer throws(KeychainFailure) in
            try writer.append([1])
            _ = FileManager.default.createFile(atPath: path, contents: Data("another's".utf8))
        }
        #expect(outcome == .alreadyThere)
        #expect(text == "another's")
        #expect(try directory.names == ["backup"])
    }

    @Test("Asked to replace it, it does so at once and wholly")
    func replaced() throws {
        try write("a first and longer one").mustBeCreated()
        #expect(try write("second", replacingExisting: true) == .created)
        #expect(text == "second")
        #expect(try directory.names == ["backup"])
    }

    @Test("A failure on the way leaves what was there, and nothing else", arguments: [true, false])
    func failed(replacingExisting: Bool) throws {
        if replacingExisting { try write("first").mustBeCreated() }
        let failure = failure { () throws(KeychainFailure) in
            _ = try PublishedFile(path).write(replacingExisting: replacingExisting) { writer throws(KeychainFailure) in
                try writer.append([1, 2, 3])
                throw KeychainFailure(.interactionNotAllowed, "by the test")
            }
        }
        #expect(failure?.status == .interactionNotAllowed)
        #expect(text == (replacingExisting ? "first" : nil))
        #expect(try directory.names == (replacingExisting ? ["backup"] : []))
    }

    @Test("Only regular files are replaced")
    func notAFile() throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "elsewhere")
        #expect(failure { () throws(KeychainFailure) in _ = try write("x", replacingExisting: true) }?.status == .notAvailable)
        #expect(try write("x") == .alreadyThere)
        #expect(try directory.names == ["backup"])
    }

    @Test("A path that leads nowhere is refused", arguments: ["relative", "/", "/nowhere at all/backup", ""])
    func badPath(path: String) {
        #expect(failure { () throws(KeychainFailure) in _ = try PublishedFile(path) }?.status == .notAvailable)
    }

    @Test("On a full disk nothing is left", .enabled(if: TemporaryMount.isPossible))
    func full() throws {
        let mount = try TemporaryMount(byteCount: 64 * 1024)
        let file = try PublishedFile(mount.directory.path + "/backup")
        let failure = failure { () throws(KeychainFailure) in
            _ = try file.write { writer throws(KeychainFailure) in
                for _ in 0..<32 { try writer.append(Array(repeating: 7, count: 4_096)) }
            }
        }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.reason.contains("disk is full") == true)
        #expect(try mount.directory.names == [])
    }
}
