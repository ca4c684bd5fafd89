// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

@Suite("Programs of an older version beside a keychain that synchronizes", .blocking)
struct OlderVersionTests {
    /// A program that does not know the format of a store that synchronizes.
    private func older(_ home: String) throws -> LocalKeychain {
        try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory) { configuration in
            configuration.storeOptions.newestKnownFormat = 2
        }
    }

    private func expectRefused(_ body: () throws(KeychainFailure) -> Void) {
        do throws(KeychainFailure) {
            try body()
            Issue.record("the older program was not refused")
        } catch {
            // The cause's advice is to update the program.
            #expect(error.cause == .newerVersion && error.subject == .store, "\(error)")
        }
    }

    private func withStore(of keychain: LocalKeychain, _ body: (any SyncStore) throws(KeychainFailure) -> Void) throws {
        try keychain.perform(creating: false) { opened throws(KeychainFailure) in
            guard let store = opened.store as? any SyncStore else { throw KeychainFailure(.internal, "not a store with a ledger") }
            try body(store)
        }
    }

    @Test("They are refused at their next write and when they start, and have everything once the device has left the circle")
    func refusedUntilDeviceLeaves() throws {
        try withTemporaryDirectory(inMemory: true) { home in
            let running = try older(home)
            try running.addItem("first", "1")
            let current = try LocalKeychain.withCheapPasscode(home: home, holder: .processMemory)
            try withStore(of: current) { store throws(KeychainFailure) in try store.startSynchronizing() }
            #expect(try running.secret(of: "first") == "1")
            expectRefused { () throws(KeychainFailure) in try running.addItem("second", "2") }
            expectRefused { () throws(KeychainFailure) in try running.updateItem("first", to: "2") }
            expectRefused { () throws(KeychainFailure) in try running.deleteItem("first") }
            let started = try older(home)
            expectRefused { () throws(KeychainFailure) in _ = try started.secret(of: "first") }
            try current.updateItem("first", to: "3")
            try current.addItem("second", "4")
            try withStore(of: current) { store throws(KeychainFailure) in try store.stopSynchronizing() }
            for program in [running, started, try older(home)] {
                #expect(try program.secret(of: "first") == "3")
                #expect(try program.secret(of: "second") == "4")
                try program.updateItem("first", to: "3")
                #expect(try program.verify(purgingQuarantine: false).isSound)
            }
        }
    }
}
