// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainSync
import SyncCore
import Testing

@Suite("Names of objects in a storage")
struct StorageNameTests {
    private static let identifier = "0123456789abcdef0123456789abcdef"
    private static let names = [
        "m/\(identifier)\(identifier)", "c/\(identifier)\(identifier)", "p/\(identifier)\(identifier)",
        "j/\(identifier)/\(identifier)\(identifier)", "b/\(identifier)/\(identifier)/0000000000000001-\(identifier)",
    ]

    @Test("Names of objects are accepted, with or without a circle", arguments: names)
    func objects(name: String) {
        #expect(StorageName.isObject(name))
        #expect(StorageName.isObject(Self.identifier + "/" + name))
        #expect(!StorageName.isObject(Self.identifier + "/" + Self.identifier + "/" + name))
        #expect(!StorageName.isObject(name.uppercased()))
        #expect(!StorageName.isFolder(name))
        for damaged in [name + "/", "/" + name, name + "\n", name + ".tmp", "../" + name, String(name.dropLast()), name + "a"] {
            #expect(!StorageName.isObject(damaged), "\(damaged)")
        }
    }

    @Test("The names of objects are those that the engine parses")
    func objectNames() {
        for name in SampleObjects.names() + Self.names {
            var texts = [name, SampleObjects.batch(0)]
            for index in name.indices {
                for replacement in ["", "/", "-", "0", "g", "F", ".", "é", "\0", "b"] {
                    texts.append(name[..<index] + replacement + name[name.index(after: index)...])
                }
            }
            for text in texts { #expect(StorageName.isObject(text) == (ObjectName(text) != nil), "\(text)") }
        }
    }

    @Test(
        "Folders of objects are accepted, with or without a circle",
        arguments: ["", "m", "b", "c", "p", "j", "b/\(identifier)", "b/\(identifier)/\(identifier)", "j/\(identifier)"])
    func folders(name: String) {
        #expect(StorageName.isFolder(name))
        #expect(StorageName.isFolder(name.isEmpty ? Self.identifier : Self.identifier + "/" + name))
        #expect(!StorageName.isObject(name))
    }

    @Test(
        "Other folders are refused",
        arguments: [
            "/", "a", "B", "m/", "/m", "..", "b/..", "b/../m", ".stversions", "m/\(identifier)", "j/\(identifier)/\(identifier)",
            "b/\(identifier)/\(identifier)/\(identifier)", "b/\(identifier.uppercased())", "\(identifier)/\(identifier)", "\(identifier)/",
            "\(identifier.uppercased())", "\(identifier.uppercased())/b", "b//\(identifier)", "zz23456789abcdef0123456789abcdef/b",
        ])
    func otherFolders(name: String) {
        #expect(!StorageName.isFolder(name))
    }
}
