// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Testing

/// The store of a test, in a directory of its own.
extension TemporaryDirectory {
    var storePath: String { path + "/keychain.db" }

    /// Makes a store with the contract's keybag and opens it.
    func makeStore(options: StoreOptions = StoreOptions()) throws -> SQLiteItemStore {
        try create(options: options)
        return try SQLiteItemStore(openingAt: storePath, options: options)
    }

    @discardableResult
    func create(storeID: StoreID = .random(), options: StoreOptions = StoreOptions()) throws -> CreationOutcome {
        try SQLiteItemStore.create(
            at: storePath, storeID: storeID, keybag: ItemStoreContract.keybag.copies[0],
            generation: ItemStoreContract.keybag.generation, options: options)
    }

    /// The sorted names of the files in the directory.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    /// The content of every file by name.
    ///
    /// No store may be open in the directory: closing a file drops this process's locks on it.
    var contents: [String: Data] {
        get throws {
            try Dictionary(uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(fileURLWithPath: path + "/" + $0))) })
        }
    }
}

func setMode(_ mode: Int, of path: String) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}

extension ItemStore {
    /// A write under the contract's keybag.
    func insert(_ rows: [SealedRow]) throws(KeychainFailure) {
        let outcome = try write(ifKeybagGeneration: ItemStoreContract.keybag.generation) { writing throws(KeychainFailure) in
            for row in rows { try writing.insert(row) }
        }
        guard case .written = outcome else { throw KeychainFailure(.internal, "the keybag changed in a test") }
    }

    func rows(_ query: RowQuery = RowQuery()) throws(KeychainFailure) -> [SealedRow] {
        var rows: [SealedRow] = []
        try read { reading throws(KeychainFailure) in
            _ = try reading.forEachRow(matching: query, includingSecrets: true) { row in
                rows.append(row)
                return .proceed
            }
        }
        return rows
    }
}

extension SQLiteItemStore {
    func replaceKeybag(_ bytes: [UInt8], generation: UInt64) throws(KeychainFailure) {
        try write(ifKeybagGeneration: try keybag().generation) { writing throws(KeychainFailure) in
            try writing.replaceKeybag(bytes, generation: generation)
        }.mustBeWritten()
    }
}

extension WriteOutcome {
    func mustBeWritten() throws(KeychainFailure) {
        guard case .written = self else { throw KeychainFailure(.internal, "the keybag changed in a test") }
    }
}

extension CreationOutcome {
    func mustBeCreated() throws(KeychainFailure) {
        guard self == .created else { throw KeychainFailure(.internal, "there was a file in a test's directory") }
    }
}

/// Returns the failure of `body`, or nil if it succeeds.
func failure(of body: () throws(KeychainFailure) -> Void) -> KeychainFailure? {
    do throws(KeychainFailure) {
        try body()
        return nil
    } catch {
        return error
    }
}

/// A copy of a directory, as a process killed at that moment would leave it.
///
/// Another process makes the copy: reading a database here would drop this process's locks on it.
struct DirectoryCopy {
    let directory: TemporaryDirectory

    init(of source: TemporaryDirectory) throws {
        directory = try TemporaryDirectory()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/cp")
        process.arguments = ["-p", "-r", source.path + "/.", directory.path]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    /// Counts the occurrences of any eight consecutive bytes of `secret` in the files.
    func pieces(of secret: [UInt8]) throws -> Int {
        let wanted = Set(Self.pieces(secret))
        return try directory.contents.values.reduce(0) { count, data in
            count + Self.pieces([UInt8](data)).count { wanted.contains($0) }
        }
    }

    private static func pieces(_ bytes: [UInt8]) -> [UInt64] {
        var piece: UInt64 = 0
        var pieces: [UInt64] = []
        for (position, byte) in bytes.enumerated() {
            piece = piece << 8 | UInt64(byte)
            if position >= 7 { pieces.append(piece) }
        }
        return pieces
    }
}
