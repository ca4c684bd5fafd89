// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import keychaind

/// A signpost in the place of a store leads its programs to keychaind.
@Suite("A signpost", .blocking)
struct SignpostTests {
    /// Two directories, one for the user and one for a service in this process, and the same store in both.
    private struct Places {
        let home: String
        let service: InProcessService
        let storeID: StoreID

        var storePath: String { home + "/keychain.db" }
        var content: Data? { FileManager.default.contents(atPath: storePath) }

        /// The keychain of a program of the user.
        func program(reaching path: String? = nil) -> UserKeychain {
            UserKeychain(LocalKeychain(home: home), connector: DaemonClient.connector(toSocketAt: path ?? service.path))
        }

        func putSignpost(_ storeID: StoreID? = nil) throws {
            try put(Signpost(storeID: storeID ?? self.storeID).encoded)
        }

        /// Puts bytes in the place of the store, which is removed with its files.
        func put(_ bytes: [UInt8]) throws {
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: storePath + suffix) }
            let other = storePath + ".other"
            _ = FileManager.default.createFile(atPath: other, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
            // Another process may open the file at any time.
            try #require(unsafe rename(other, storePath) == 0)
        }
    }

    private func withPlaces(_ body: (Places) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let keychains = directory + "/keychains"
            let service = try InProcessService(keychainsIn: keychains)
            let storeID = try LocalKeychain(home: directory + "/adopted").handOver(to: DaemonClient.connector(toSocketAt: service.path))
                .storeID
            try service.client("KeychainTestChild", storeID: storeID).set("a", "kept")
            try FileManager.default.createDirectory(
                atPath: directory + "/home", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try body(Places(home: directory + "/home", service: service, storeID: storeID))
        }
    }

    @Test("A program that starts uses keychaind, and creates no store")
    func start() throws {
        try withPlaces { places in
            try places.putSignpost()
            let program = places.program()
            #expect(try program.value(of: "a") == "kept")
            try program.set("b", "new")
            #expect(try places.service.client("KeychainTestChild", storeID: places.storeID).value(of: "b") == "new")
            #expect(try program.sessionStatus().isPasscodeSet == false)
            #expect(try FileManager.default.contentsOfDirectory(atPath: places.home) == ["keychain.db"])
        }
    }

    @Test("A program that runs notices that keychaind keeps its keychain")
    func running() throws {
        try withPlaces { places in
            let program = places.program()
            try program.set("a", "in the file")
            #expect(try program.value(of: "a") == "in the file")
            try places.putSignpost()
            try program.set("c", "after")
            #expect(try places.service.client("KeychainTestChild", storeID: places.storeID).value(of: "c") == "after")
            #expect(try program.value(of: "a") == "kept")
        }
    }

    @Test("A signpost to a keychain that keychaind does not keep is an error")
    func foreign() throws {
        try withPlaces { places in
            try places.putSignpost(.random())
            let program = places.program()
            for attempt in 1...2 {
                #expect(failure(of: program, "\(attempt)")?.cause == .notKept)
            }
        }
    }

    @Test("Without keychaind, calls fail, nothing is created, and the signpost stays")
    func absentService() throws {
        try withPlaces { places in
            try places.putSignpost()
            let content = places.content
            let program = places.program(reaching: places.home + "/nothing")
            #expect(throws: KeychainFailure(.notAvailable, "")) { try program.set("b", "1") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try program.value(of: "a") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try program.sessionStatus() }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try program.lock(.everything) }
            #expect(places.content == content)
            #expect(try FileManager.default.contentsOfDirectory(atPath: places.home) == ["keychain.db"])
        }
    }

    @Test("A signpost of another version, or a damaged one, is an error and is not replaced", arguments: Unusable.allCases)
    func unusable(_ unusable: Unusable) throws {
        try withPlaces { places in
            var bytes = Signpost(storeID: places.storeID).encoded
            switch unusable {
            case .newerVersion: bytes[19] = UInt8(ascii: "2")
            case .damaged: bytes[30] = UInt8(ascii: "x")
            case .cut: bytes.removeLast(10)
            case .longer: bytes += bytes
            }
            try places.put(bytes)
            let program = places.program()
            let failure = failure(of: program)
            #expect(failure?.status == .notAvailable)
            #expect(failure?.cause == (unusable == .newerVersion ? .newerVersion : .malformed))
            #expect(failure?.isDamage == false)
            _ = try? program.local.repair(applying: true)
            _ = try? program.local.acceptContent(applying: true, acceptingKeybag: true)
            #expect(places.content == Data(bytes))
        }
    }

    enum Unusable: CaseIterable {
        case newerVersion, damaged, cut, longer
    }

    @Test("An observer is told when keychaind takes the keychain over, and of changes there")
    func observation() throws {
        try withPlaces { places in
            let program = places.program()
            try program.set("a", "1")
            let count = Mutex(0)
            let observation = try program.observeChanges { count.withLock { $0 += 1 } }
            try places.putSignpost()
            #expect(waitUntil { count.withLock { $0 } > 0 })
            let before = count.withLock { $0 }
            try places.service.client("KeychainTestChild", storeID: places.storeID).set("a", "2")
            #expect(waitUntil { count.withLock { $0 } > before })
            observation.cancel()
        }
    }

    private func failure(of program: UserKeychain, _ value: String = "1") -> KeychainFailure? {
        do throws(KeychainFailure) {
            try program.set("b", value)
            return nil
        } catch {
            return error
        }
    }
}
