// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The anchor and the path of the keychain", .blocking)
struct AnchorPathTests {
    /// A keychain whose data and state have directories of their own.
    private struct Home {
        let directory: String
        var data: String { directory + "/data/keychain" }

        init(_ directory: String) throws {
            self.directory = directory
            for name in ["data", "state"] {
                try FileManager.default.createDirectory(
                    atPath: "\(directory)/\(name)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            }
        }

        /// `data` is the name of the data directory.
        func keychain(data: String = "data") -> LocalKeychain {
            LocalKeychain(
                configuration: KeychainConfiguration(
                    storePath: "\(directory)/\(data)/keychain/keychain.db", keyDirectory: "\(directory)/state/keychain"),
                entitlements: Entitlements(applicationIdentifier: "test"))
        }

        func add(_ account: String, data: String = "data") throws { try keychain(data: data).addItem(account, "secret") }

        func link(_ name: String, to target: String) throws {
            try FileManager.default.createSymbolicLink(atPath: directory + "/" + name, withDestinationPath: directory + "/" + target)
        }
    }

    private func withHome(_ body: (Home) throws -> Void) throws {
        try withTemporaryDirectory { directory in try body(Home(directory)) }
    }

    private func problem(_ keychain: LocalKeychain) -> StateProblem? {
        do throws(KeychainFailure) {
            _ = try keychain.report()
            return nil
        } catch {
            guard case .unexpectedState(let problem)? = error.cause else {
                Issue.record(error)
                return nil
            }
            return problem
        }
    }

    @Test("A link in the place of a directory does not hide the anchor", arguments: ["data/keychain", "data"])
    func linked(name: String) throws {
        try withHome { home in
            try home.add("first")
            let path = home.directory + "/" + name
            try FileManager.default.copyItem(atPath: path, toPath: home.directory + "/old")
            try home.add("second")
            try FileManager.default.moveItem(atPath: path, toPath: path + ".aside")
            try home.link(name, to: "old")
            #expect(problem(home.keychain()) == .rolledBack(missingChangeCount: 1))
            try FileManager.default.removeItem(atPath: path)
            try home.link(name, to: name + ".aside")
            #expect(problem(home.keychain()) == nil)
            try home.add("third")
            // Both anchors know the third item now.
            try FileManager.default.removeItem(atPath: path)
            try home.link(name, to: "old")
            #expect(problem(home.keychain()) == .rolledBack(missingChangeCount: 2))
        }
    }

    @Test("Several names of a keychain have an anchor in common")
    func severalNames() throws {
        try withHome { home in
            try home.link("other", to: "data")
            try home.add("first")
            try home.add("second", data: "other")
            #expect(problem(home.keychain()) == nil)
            try FileManager.default.copyItem(atPath: home.data, toPath: home.directory + "/old")
            try home.add("third", data: "other")
            try home.add("fourth")
            try FileManager.default.removeItem(atPath: home.data)
            try FileManager.default.copyItem(atPath: home.directory + "/old", toPath: home.data)
            #expect(problem(home.keychain()) == .rolledBack(missingChangeCount: 2))
            #expect(problem(home.keychain(data: "other")) == .rolledBack(missingChangeCount: 2))
        }
    }

    @Test("A snapshot that is restored under one name opens under the others")
    func restored() throws {
        try withHome { home in
            try home.link("other", to: "data")
            try home.add("first", data: "other")
            try home.keychain().snapshot(toPath: home.directory + "/snapshot", replacing: false)
            try home.add("second", data: "other")
            #expect(try home.keychain().restoreSnapshot(fromPath: home.directory + "/snapshot", applying: true).isRestored)
            #expect(problem(home.keychain(data: "other")) == nil)
            try home.add("third", data: "other")
            #expect(problem(home.keychain()) == nil)
        }
    }

    @Test("A moved keychain opens, and so does one whose directory was moved and linked")
    func moved() throws {
        try withHome { home in
            try home.add("first")
            try home.add("second")
            try FileManager.default.moveItem(atPath: home.directory + "/data", toPath: home.directory + "/moved")
            #expect(problem(home.keychain(data: "moved")) == nil)
            try home.link("data", to: "moved")
            #expect(problem(home.keychain()) == nil)
            try home.add("third")
            #expect(problem(home.keychain(data: "moved")) == nil)
        }
    }

    @Test("An older copy that is opened at another path is not refused")
    func openedElsewhere() throws {
        try withHome { home in
            try home.add("first")
            try FileManager.default.copyItem(atPath: home.directory + "/data", toPath: home.directory + "/copy")
            try home.add("second")
            #expect(problem(home.keychain(data: "copy")) == nil)
            try home.add("third", data: "copy")
            try home.add("fourth")
            #expect(problem(home.keychain()) == nil)
            #expect(problem(home.keychain(data: "copy")) == nil)
        }
    }
}
