// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

extension StoreSession {
    /// Runs the body of a write.
    ///
    /// Throws `.notAvailable` with the cause `.quota` if it has stored items and has made the store larger than the quota allows. Removals,
    /// tombstones, and changes of the keybag succeed in a full store, even if SQLite needs another page for them.
    func write<Result>(
        within quota: StoreQuota?, _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        guard let quota else { return try body() }
        let bytesBefore = try usedByteCount()
        let rowsBefore = pendingState?.state.rowCount
        storesItems = false
        let result = try body()
        guard storesItems else { return result }
        let bytes = try usedByteCount()
        if bytes > quota.byteCount, bytes > bytesBefore {
            throw Self.quotaFailure("the keychain may have at most \(quota.byteCount >> 20) MiB")
        }
        if let pendingState, pendingState.state.rowCount > quota.rowCount,
            pendingState.state.rowCount > rowsBefore ?? pendingState.original.rowCount
        {
            throw Self.quotaFailure("the keychain may have at most \(quota.rowCount) items")
        }
        return result
    }

    private func usedByteCount() throws(KeychainFailure) -> Int {
        Int(try pageCount(.pageCount) - pageCount(.freePageCount)) * StoreSchema.pageByteCount
    }

    private func pageCount(_ name: StoreStatement) throws(KeychainFailure) -> Int64 {
        let statement = try connection.statement(name)
        defer { statement.reset() }
        return try statement.step() ? statement.integer(at: 0) : 0
    }

    private static func quotaFailure(_ reason: String) -> KeychainFailure {
        KeychainFailure(.notAvailable, reason, subject: .store, cause: .quota)
    }
}
