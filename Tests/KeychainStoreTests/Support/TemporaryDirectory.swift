// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainStore
import KeychainTesting

/// A private directory for one test, removed when the test lets go of it.
final class TemporaryDirectory: Sendable {
    let path: String
    var storePath: String { path + "/keychain.db" }

    init() throws {
        let base = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        path = base + "/keychain-store-tests-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try setMode(0o700, of: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

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

    /// The names in the directory, in order.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
    }

    /// Every file's bytes by name.
    ///
    /// Only while no store is open here: reading a file drops the locks on it.
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
            try reading.forEachRow(matching: query, includingSecrets: true) { row in
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

/// The failure of `body`; nil when it succeeds.
func failure(of body: () throws(KeychainFailure) -> Void) -> KeychainFailure? {
    do throws(KeychainFailure) {
        try body()
        return nil
    } catch {
        return error
    }
}
