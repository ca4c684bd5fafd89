// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The anchor of a keychain", .blocking)
struct AnchorFileTests {
    private func withKeychain(_ body: (_ home: String, _ anchor: String) throws -> Void) throws {
        try withTemporaryDirectory(inMemory: true) { directory in
            let home = directory + "/home"
            try LocalKeychain(home: home).addItem("account 1", "secret 1")
            let id = try #require(try LocalKeychain(home: home).report().store?.id)
            try body(home, KeychainConfiguration(home: home).anchorPaths(for: id)[0])
        }
    }

    private func expectUsable(_ home: String, problems: Int = 0) throws {
        #expect(try LocalKeychain(home: home).secret(of: "account 1") == "secret 1")
        try LocalKeychain(home: home).updateItem("account 1", to: "secret 1")
        #expect(try LocalKeychain(home: home).verify(purgingQuarantine: false).structuralProblems.count == problems)
    }

    @Test("Is beside the key file, for its owner only, and has one record")
    func place() throws {
        try withKeychain { home, anchor in
            let attributes = try FileManager.default.attributesOfItem(atPath: anchor)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            let size = try #require(attributes[.size] as? Int)
            // One sector, which a disk writes completely or not at all.
            #expect(size > 0 && size <= 512)
            try LocalKeychain(home: home).addItem("account 2", "secret 2")
            #expect(try FileManager.default.attributesOfItem(atPath: anchor)[.size] as? Int == size)
        }
    }

    @Test("Without it the keychain opens, and another is made")
    func missing() throws {
        try withKeychain { home, anchor in
            try FileManager.default.removeItem(atPath: anchor)
            try expectUsable(home)
            #expect(FileManager.default.fileExists(atPath: anchor))
        }
    }

    @Test("Damaged, it does not count, and the next write replaces it", arguments: [0, 1, 100, 151])
    func damaged(_ byteCount: Int) throws {
        try withKeychain { home, anchor in
            let handle = try FileHandle(forWritingTo: URL(filePath: anchor))
            try handle.truncate(atOffset: 0)
            try handle.write(contentsOf: Data(repeating: 7, count: byteCount))
            try handle.close()
            try expectUsable(home)
        }
    }

    @Test("A copy of it, as a restored home directory has, does not count")
    func copied() throws {
        try withKeychain { home, anchor in
            try FileManager.default.copyItem(atPath: home + "/keychain.db", toPath: home + "/old")
            try LocalKeychain(home: home).addItem("account 2", "secret 2")
            // A backup copies the files at different moments.
            try FileManager.default.copyItem(atPath: anchor, toPath: anchor + ".copy")
            for (copy, original) in [(anchor + ".copy", anchor), (home + "/old", home + "/keychain.db")] {
                try FileManager.default.removeItem(atPath: original)
                try FileManager.default.moveItem(atPath: copy, toPath: original)
            }
            try expectUsable(home)
        }
    }

    @Test("If it cannot be used, the keychain works, and verification reports it")
    func unusable() throws {
        try withKeychain { home, anchor in
            try FileManager.default.removeItem(atPath: anchor)
            try FileManager.default.createDirectory(atPath: anchor, withIntermediateDirectories: false)
            try expectUsable(home, problems: 1)
            #expect(try LocalKeychain(home: home).report().store?.anchorRefusal != nil)
        }
    }

    @Test("A file of the program that has the descriptor of the anchor is not overwritten")
    func descriptorReused() throws {
        try withKeychain { home, anchor in
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("before", "secret")
            let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) == anchor
            }
            let own = home + "/own"
            try Data("content".utf8).write(to: URL(filePath: own))
            let file = try FileHandle(forUpdating: URL(filePath: own))
            for descriptor in descriptors { try #require(dup2(file.fileDescriptor, Int32(descriptor) ?? -1) >= 0) }
            #expect(!descriptors.isEmpty)
            let record = try Data(contentsOf: URL(filePath: anchor))
            try keychain.addItem("after", "secret")
            #expect(try Data(contentsOf: URL(filePath: own)) == Data("content".utf8))
            #expect(try Data(contentsOf: URL(filePath: anchor)) != record)
            #expect(try LocalKeychain(home: home).secret(of: "after") == "secret")
            try file.close()
        }
    }
}
