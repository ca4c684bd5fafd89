// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("What is reported and verified")
struct KeychainReportTests {
    @Test("Where there is no keychain the report says so, and makes nothing")
    func absent() throws {
        try withTemporaryDirectory { directory in
            let report = try LocalKeychain(home: directory + "/home").report()
            #expect(report.store == nil)
            #expect(report.storePath == directory + "/home/keychain.db")
            #expect(report.applicationIdentifier == "KeychainTestChild")
            #expect(report.accessGroups == ["KeychainTestChild"])
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }

    @Test("The report counts the items and names what protects them")
    func present() throws {
        try withTemporaryDirectory { directory in
            let keychain = LocalKeychain(home: directory + "/home")
            for number in 0..<3 { try keychain.addItem("account \(number)", "secret") }
            try keychain.deleteItem("account 1")
            let store = try #require(try LocalKeychain(home: directory + "/home").report().store)
            #expect(store.itemCount == 2)
            #expect(store.quarantinedCount == 0)
            #expect(store.damagedKeybagCopyCount == 0)
            #expect(store.protector == .keyFile)
            #expect(store.protectorLocation == "\(directory)/home/keys/\(store.id.hexadecimal).key")
            #expect(FileManager.default.fileExists(atPath: store.protectorLocation))
            #expect(!store.isScrubPending)
        }
    }

    @Test("A keychain as it was written is found whole")
    func whole() throws {
        try withTemporaryDirectory { directory in
            let keychain = LocalKeychain(home: directory + "/home")
            try keychain.addItem("account", "secret")
            let report = try LocalKeychain(home: directory + "/home").verify(purgingQuarantine: false)
            #expect(report.findings.isEmpty)
            #expect(report.structuralProblems.isEmpty)
        }
    }

    @Test("Verifying where there is no keychain says 'not found', and makes nothing")
    func nothingToVerify() throws {
        try withTemporaryDirectory { directory throws in
            #expect(throws: KeychainFailure(.itemNotFound, "")) {
                try LocalKeychain(home: directory + "/home").verify(purgingQuarantine: true)
            }
            #expect(try FileSnapshot(of: directory).names.isEmpty)
        }
    }
}
