// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Testing

@Suite("What is logged and what errors say tells nothing")
struct LogLeakTests {
    private let search = LeakSearch(texts: Marker.allCases.map(\.rawValue))

    /// All that a process says that stores, reads, fails, locks and unlocks, with rows damaged in between.
    private func talk(_ options: [String] = []) throws -> String {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let entitlements = directory + "/test.entitlements"
            let groups = ["keychain-access-groups": [Marker.group.rawValue]]
            try PropertyListSerialization.data(fromPropertyList: groups, format: .xml, options: 0).write(to: URL(filePath: entitlements))
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
