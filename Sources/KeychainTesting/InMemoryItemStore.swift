// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import Foundation
package import KeychainCore
internal import Synchronization

/// Rows in memory: the real store's rules without its file.
package final class InMemoryItemStore: ItemStore {
    struct Contents: Sendable {
        var keybag: StoredKeybag
        var lockEpoch = LockEpoch(rawValue: 0)
        /// In ascending order of number.
        var rows: [SealedRow] = []
        var quarantine: [QuarantinedRow] = []
        var lastNumber: Int64 = 0
    }

    private let contents: Mutex<Contents>
    /// One writer at a time; readers see the state before or after it.
    private let writerLock = NSLock()

    package init(keybag: StoredKeybag) {
        contents = Mutex(Contents(keybag: keybag))
    }

    package func read<Result>(
        _ body: (any ItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        try body(InMemoryTransaction(contents.withLock { $0 }))
    }

    package func write<Result>(
        ifKeybagGeneration generation: UInt64, _ body: (any ItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> WriteOutcome<Result> {
        writerLock.lock()
        defer { writerLock.unlock() }
        let transaction = InMemoryTransaction(contents.withLock { $0 })
        guard transaction.contents.keybag.generation == generation else { return .keybagChanged }
        let result = try body(transaction)
        let written = transaction.contents
        contents.withLock { $0 = written }
        return .written(result)
    }

    package func advanceLockEpoch(_ extent: LockExtent) {
        writerLock.lock()
        defer { writerLock.unlock() }
        contents.withLock { $0.lockEpoch = $0.lockEpoch.advanced(by: extent) }
    }
}
#endif
