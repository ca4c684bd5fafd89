// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The key file")
struct KeyFileTests {
    private let storeID = StoreID(high: 0x0123_4567_89ab_cdef, low: 0xfedc_ba98_7654_3210)
    private let storePath = "/home/skroob/.local/share/keychain/keychain.db"

    private func withKeyFile(_ body: (KeyFile, _ directory: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in try body(KeyFile(directory: directory, storePath: storePath), directory) }
    }

    private func secret(_ byte: UInt8) throws -> SecretBytes {
        // The region is as long as the array.
        try unsafe SecretBytes(byteCount: DeviceSecret.byteCount) { region in
            unsafe region.copyBytes(from: [UInt8](repeating: byte, count: DeviceSecret.byteCount))
        }
    }

    private func bytes(of secret: borrowing SecretBytes) -> [UInt8] { unsafe secret.withBytes { unsafe Array($0) } }

    @Test("A confirmed secret is read from a file accessible only to its owner and named by the store's identifier")
    func roundTrip() throws {
        try withKeyFile { keyFile, directory in
            try keyFile.prepare(secret(0x5a), for: storeID)
            try keyFile.confirm(for: storeID)
            #expect(try bytes(of: keyFile.deviceSecret(for: storeID)) == [UInt8](repeating: 0x5a, count: DeviceSecret.byteCount))
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["0123456789abcdeffedcba9876543210.key"])
            let attributes = try FileManager.default.attributesOfItem(atPath: keyFile.path(for: storeID))
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test("The layout is fixed, so old files stay readable")
    func layout() throws {
        try withKeyFile { keyFile, _ in
            var expected = Data("KCDEVKEY".utf8)
            expected.append(1)
            expected.append(contentsOf: storeID.bytes)
            expected.append(contentsOf: [UInt8](repeating: 7, count: 32))
            expected.append(contentsOf: [UInt8(storePath.utf8.count), 0])
            expected.append(contentsOf: storePath.utf8)
            try keyFile.prepare(secret(7), for: storeID)
            try keyFile.confirm(for: storeID)
            #expect(try Data(contentsOf: URL(filePath: keyFile.path(for: storeID))) == expected)
        }
    }

    @Test("A secret whose creator was killed before confirming is found and confirmed")
    func unconfirmed() throws {
        try withTemporaryDirectory { directory in
            let keyFile = KeyFile(directory: directory, storePath: directory + "/keychain.db")
            try keyFile.prepare(secret(1), for: storeID)
            try expectOpening(keyFile, has: 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [storeID.hexadecimal + ".key"])
        }
    }

    @Test("The key file keeps its provisional name until the store's directory entry is flushed")
    func storeNameNotFlushed() throws {
        try withKeyFile { keyFile, directory in
            try keyFile.prepare(secret(1), for: storeID)
            try expectOpening(keyFile, has: 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [storeID.hexadecimal + ".key.new"])
        }
    }

    @Test("The next move removes a provisional name that a crash left next to the final one")
    func bothNames() throws {
        try withKeyFile { keyFile, directory in
            try keyFile.prepare(secret(1), for: storeID)
            try keyFile.confirm(for: storeID)
            try FileManager.default.linkItem(atPath: keyFile.path(for: storeID), toPath: keyFile.path(for: storeID) + ".new")
            try expectOpening(keyFile, has: 1)
            try keyFile.prepareMove(secret(2), for: storeID)
            try keyFile.confirm(for: storeID)
            for byte: UInt8 in [1, 2] { try expectOpening(keyFile, has: byte) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 2)
        }
    }

    @Test("Confirming is not an error if a reader has already done so")
    func confirmedTwice() throws {
        try withKeyFile { keyFile, _ in
            try keyFile.prepare(secret(1), for: storeID)
            try expectOpening(keyFile, has: 1)
            try keyFile.confirm(for: storeID)
            try keyFile.confirm(for: storeID)
        }
    }

    @Test("A discarded secret leaves nothing behind")
    func discarded() throws {
        try withKeyFile { keyFile, directory in
            try keyFile.prepare(secret(1), for: storeID)
            keyFile.discard(for: storeID)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        }
    }

    /// Expects that the store, whose keybag only this secret opens, is opened.
    private func expectOpening(_ keyFile: KeyFile, has byte: UInt8) throws {
        let expected = [UInt8](repeating: byte, count: DeviceSecret.byteCount)
        let (found, used) = try keyFile.opening(storeID) { secret throws(KeychainFailure) in
            let found = unsafe secret.withBytes { unsafe Array($0) }
            guard found == expected else { throw KeychainFailure(.notAvailable, "another secret") }
            return found
        }
        #expect(found == expected)
        #expect(try bytes(of: used.deviceSecret(for: storeID)) == expected)
    }

    @Test("An existing key file is never overwritten, and of several the one that opens the store is used")
    func neverOverwritten() throws {
        try withKeyFile { keyFile, directory in
            try keyFile.prepare(secret(1), for: storeID)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try keyFile.prepare(secret(2), for: storeID) }
            try keyFile.confirm(for: storeID)
            try keyFile.prepare(secret(2), for: storeID)
            try keyFile.confirm(for: storeID)
            #expect(try bytes(of: keyFile.deviceSecret(for: storeID)) == [UInt8](repeating: 2, count: DeviceSecret.byteCount))
            for byte: UInt8 in [1, 2, 2, 1] { try expectOpening(keyFile, has: byte) }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try expectOpening(keyFile, has: 3) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 2)
            // A provisional file is kept as well, whether the next move succeeds or not.
            try keyFile.prepareMove(secret(3), for: storeID)
            try keyFile.prepareMove(secret(4), for: storeID)
            for byte: UInt8 in [1, 2, 3, 4] { try expectOpening(keyFile, has: byte) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 4)
        }
    }

    /// The ways in which a key file can be invalid.
    enum Defect: String, CaseIterable, CustomTestStringConvertible {
        case gone, empty, shortened, foreign, newer, ofAnotherStore, oversized, readableByGroup, writableByOthers, symbolicLink, directory

        var testDescription: String { rawValue }

        func apply(to path: String) throws {
            let file = URL(filePath: path)
            var content = try Data(contentsOf: file)
            switch self {
            case .gone: try FileManager.default.removeItem(at: file)
            case .empty: try replace(path, by: Data())
            case .shortened: try replace(path, by: content.prefix(58))
            case .foreign: try replace(path, by: Data("-----BEGIN PRIVATE KEY-----".utf8) + content)
            case .newer:
                content[8] = 2
                try replace(path, by: content)
            case .ofAnotherStore:
                content[9] ^= 1
                try replace(path, by: content)
            case .oversized: try replace(path, by: content + Data(count: 1 << 20))
            case .readableByGroup: try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
            case .writableByOthers: try FileManager.default.setAttributes([.posixPermissions: 0o602], ofItemAtPath: path)
            case .symbolicLink:
                try FileManager.default.moveItem(atPath: path, toPath: path + ".real")
                try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".real")
            case .directory:
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            }
        }

        private func replace(_ path: String, by content: Data) throws {
            try content.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
    }

    @Test("An invalid key file is an error with its path, and is not changed", arguments: Defect.allCases)
    func defect(_ defect: Defect) throws {
        try withKeyFile { keyFile, _ in
            try keyFile.prepare(secret(1), for: storeID)
            try keyFile.confirm(for: storeID)
            let path = keyFile.path(for: storeID)
            try defect.apply(to: path)
            let before = try? Data(contentsOf: URL(filePath: path))
            let failure = #expect(throws: KeychainFailure.self) { _ = try keyFile.deviceSecret(for: storeID) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.path == path && failure?.subject == .keyFile)
            #expect((try? Data(contentsOf: URL(filePath: path))) == before)
        }
    }

    @Test("The key file of a removed store is recognized by the store's path")
    func orphan() throws {
        try withKeyFile { keyFile, directory in
            #expect(try keyFile.orphanPath() == nil)
            let elsewhere = KeyFile(directory: directory, storePath: "/elsewhere/keychain.db")
            try elsewhere.prepare(secret(1), for: StoreID(high: 1, low: 1))
            try elsewhere.confirm(for: StoreID(high: 1, low: 1))
            #expect(try keyFile.orphanPath() == nil)

            try keyFile.prepare(secret(1), for: storeID)
            #expect(try keyFile.orphanPath() == nil, "its store was never published")
            try keyFile.confirm(for: storeID)
            #expect(try keyFile.orphanPath() == keyFile.path(for: storeID))
        }
    }

    @Test("The path of the store may differ from the one at its creation", arguments: ["link", "real/../real", "real/."])
    func orphanByAnotherWay(_ way: String) throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createDirectory(atPath: directory + "/real", withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(atPath: directory + "/link", withDestinationPath: "real")
            let made = KeyFile(directory: directory, storePath: "\(directory)/\(way)/keychain/keychain.db")
            try made.prepare(secret(1), for: storeID)
            try made.confirm(for: storeID)
            let now = KeyFile(directory: directory, storePath: directory + "/real/keychain/keychain.db")
            #expect(try now.orphanPath() == now.path(for: storeID))
            let elsewhere = KeyFile(directory: directory, storePath: directory + "/real/keychain.db")
            #expect(try elsewhere.orphanPath() == nil)
        }
    }

    @Test("Without a key directory there is no orphan")
    func noDirectory() throws {
        try withTemporaryDirectory { directory throws in
            #expect(try KeyFile(directory: directory + "/absent", storePath: storePath).orphanPath() == nil)
        }
    }

    @Test("An unreadable key file is not reported as missing")
    func unreadableOrphan() throws {
        try withKeyFile { keyFile, _ in
            try keyFile.prepare(secret(1), for: storeID)
            try keyFile.confirm(for: storeID)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: keyFile.path(for: storeID))
            let failure = #expect(throws: KeychainFailure.self) { try keyFile.orphanPath() }
            #expect(failure?.path == keyFile.path(for: storeID) && failure?.subject == .keyFile)
        }
    }
}
