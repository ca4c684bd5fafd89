// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("A keychain that cannot be used is said to be so, and left as it is")
struct BadStateTests {
    /// What a program may ask of a keychain.
    enum Call: CaseIterable {
        case add, read, update, delete, report, verify

        func make(on keychain: LocalKeychain) throws(KeychainFailure) {
            switch self {
            case .add: try keychain.addItem("new", "a new secret")
            case .read: _ = try keychain.secret(of: "kept")
            case .update: try keychain.updateItem("kept", to: "another secret")
            case .delete: try keychain.deleteItem("kept")
            case .report: _ = try keychain.report()
            case .verify: _ = try keychain.verify(purgingQuarantine: true)
            }
        }
    }

    @Test("No call says 'not found', each says what is wrong and what to do, and nothing is changed", arguments: BadState.all)
    func badState(_ state: BadState) throws { try expectRefused(state) }

    @Test(
        "The files of another user are refused, and left as they are",
        .enabled(if: geteuid() == 0, "only root can give files to another user"), arguments: BadState.ownedByAnother)
    func ownedByAnother(_ state: BadState) throws { try expectRefused(state) }

    private func expectRefused(_ state: BadState) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            let keyFile = try Self.makeKeychain(home)
            try state.prepare(home, keyFile)
            let before = try FileSnapshot(of: home)
            for call in Call.allCases {
                // Each as the first call of a process would be.
                let failure = #expect(throws: KeychainFailure.self, "\(call)") {
                    try call.make(on: LocalKeychain(home: home, configure: state.configure))
                }
                guard let failure else { continue }
                #expect(failure.status == .notAvailable, "\(call): \(failure)")
                for word in state.mentions {
                    let expected = ["STORE": home + "/keychain.db", "KEY": keyFile, "HOME": home][word] ?? word
                    #expect(failure.reason.contains(expected), "\(call): \(failure.reason)")
                }
                #expect(try FileSnapshot(of: home) == before, "\(call)")
            }
        }
    }

    /// A keychain with one item; gives the key file's path.
    static func makeKeychain(_ home: String) throws -> String {
        let keychain = LocalKeychain(home: home)
        try keychain.addItem("kept", "a secret that was there")
        let store = try #require(try keychain.report().store)
        return "\(home)/keys/\(store.id.hexadecimal).key"
    }

    @Test("One damaged copy of the keybag is no obstacle, and is reported", arguments: ["keybag", "keybag_copy"])
    func oneCopyDamaged(_ table: String) throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            _ = try Self.makeKeychain(home)
            try RawDatabase(home + "/keychain.db").execute("UPDATE \(table) SET bytes = zeroblob(length(bytes))")
            let keychain = LocalKeychain(home: home)
            #expect(try keychain.secret(of: "kept") == "a secret that was there")
            #expect(try keychain.report().store?.damagedKeybagCopyCount == 1)
            #expect(try keychain.verify(purgingQuarantine: false).damagedKeybagCopyCount == 1)
        }
    }

    @Test("A keybag that is not the one that was stored last serves for reading, and verify says so")
    func keybagNotCurrent() throws {
        try withTemporaryDirectory { directory in
            let home = directory + "/home"
            _ = try Self.makeKeychain(home)
            try RawDatabase(home + "/keychain.db").execute("UPDATE meta SET keybag_generation = 2")
            let keychain = LocalKeychain(home: home)
            #expect(try keychain.secret(of: "kept") == "a secret that was there")
            let failure = #expect(throws: KeychainFailure.self) { try keychain.addItem("new", "a new secret") }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains("keybag") == true)
            #expect(try keychain.verify(purgingQuarantine: false).structuralProblems.contains { $0.contains("keybag") })
        }
    }

    @Test("Where there is none, reading, updating and deleting say 'not found' and make nothing", arguments: [Call.read, .update, .delete])
    func absent(_ call: Call) throws {
        try withTemporaryDirectory { directory throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try call.make(on: LocalKeychain(home: directory + "/home")) }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("A directory above may be a symbolic link, for making a keychain and for finding it", arguments: ["link/home", "link/more/home"])
    func linkAbove(_ path: String) throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createDirectory(atPath: directory + "/real", withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: "real")
            _ = try Self.makeKeychain("\(directory)/\(path)")
            #expect(try LocalKeychain(home: "\(directory)/\(path)").secret(of: "kept") == "a secret that was there")
            let realPath = path.replacing("link", with: "real")
            #expect(try LocalKeychain(home: "\(directory)/\(realPath)").secret(of: "kept") == "a secret that was there")
        }
    }
}
