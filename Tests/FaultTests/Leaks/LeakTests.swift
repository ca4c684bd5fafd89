// SPDX-License-Identifier: Apache-2.0
import CSQLite
import Foundation
import KeychainTestSupport
import Testing

@Suite("What lies on the disk tells nothing")
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
