// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The ledger's live and pending versions.
extension StoreSession {
    // MARK: Live versions

    func liveVersions(named name: ItemName) throws(KeychainFailure) -> [LiveVersion] {
        let statement = try connection.statement(.versionsByName)
        statement.bind(name, at: 1)
        return try versions(from: statement)
    }

    func liveVersion(_ reference: VersionReference) throws(KeychainFailure) -> LiveVersion? {
        let statement = try connection.statement(.versionsByID)
        statement.bind(reference.id, at: 1)
        return try versions(from: statement).first { $0.reference == reference }
    }

    func liveVersion(shownBy item: ItemID) throws(KeychainFailure) -> LiveVersion? {
        let statement = try connection.statement(.versionByItem)
        statement.bind(item, at: 1)
        return try versions(from: statement).first
    }

    func liveVersions(after reference: VersionReference?, limit: Int) throws(KeychainFailure) -> [LiveVersion] {
        let statement = try connection.statement(.versionsFromID)
        statement.bind(reference?.id.value ?? Identifier128(high: 0, low: 0), at: 1)
        defer { statement.reset() }
        var found: [LiveVersion] = []
        while found.count < limit, try statement.step() {
            let version = try version(in: statement)
            if let reference, version.reference <= reference { continue }
            found.append(version)
        }
        return found
    }

    func liveVersionCount() throws(KeychainFailure) -> Int { try storedVersionCount() + versionCountChange }

    func shownVersionCount() throws(KeychainFailure) -> Int { try count(.shownVersionCount) }

    func namesOfHiddenVersions() throws(KeychainFailure) -> [ItemName] {
        // Most keychains have none.
        guard try shownVersionCount() < liveVersionCount() else { return [] }
        let statement = try connection.statement(.hiddenVersionNames)
        defer { statement.reset() }
        var names: Set<ItemName> = []
        while try statement.step() { names.insert(try statement.required(ItemName.self, at: 0)) }
        return names.sorted()
    }

    func insert(_ version: LiveVersion) throws(KeychainFailure) {
        guard try stored(version.reference) == nil else { throw Self.isLiveAlready }
        let statement = try connection.statement(.insertVersion)
        try bind(version, to: statement)
        try statement.run()
        versionCountChange += 1
    }

    func replace(_ reference: VersionReference, with version: LiveVersion) throws(KeychainFailure) {
        guard let stored = try stored(reference) else { return try insert(version) }
        if version.reference != reference, try self.stored(version.reference) != nil { throw Self.isLiveAlready }
        let keepsIndexes = version.reference.id == reference.id && version.name == stored.name && version.item == stored.item
        let statement = try connection.statement(keepsIndexes ? .updateUnindexedColumns : .updateVersion)
        try bind(version, to: statement)
        statement.bind(stored.number, at: 10)
        try statement.run()
    }

    func remove(_ reference: VersionReference) throws(KeychainFailure) {
        guard let stored = try stored(reference) else { return }
        let statement = try connection.statement(.removeVersion)
        statement.bind(stored.number, at: 1)
        try statement.run()
        versionCountChange -= 1
    }

    private static var isLiveAlready: KeychainFailure { KeychainFailure(.duplicateItem, "the ledger has this version already") }

    /// Returns the number of the row of a live version, and its columns that have indexes, besides the identifier.
    private func stored(_ reference: VersionReference) throws(KeychainFailure) -> (number: Int64, name: ItemName?, item: ItemID?)? {
        guard let log = try logNumber(of: reference.origin) else { return nil }
        let statement = try connection.statement(.hasVersion)
        defer { statement.reset() }
        statement.bind(reference.id, at: 1)
        statement.bind(reference.origin, log: log, at: 2)
        guard try statement.step() else { return nil }
        return (statement.integer(at: 0), statement.identifier(at: 1).map { ItemName($0) }, statement.identifier(at: 2))
    }

    private func bind(_ version: LiveVersion, to statement: SQLiteStatement) throws(KeychainFailure) {
        let log = try insertedLogNumber(of: version.reference.origin)
        statement.bind(version.reference.id, at: 1)
        statement.bind(version.reference.origin, log: log, at: 2)
        statement.bind(version.name, at: 5)
        statement.bind(Int64(version.lane.rawValue), at: 6)
        if let date = version.date { statement.bind(date, at: 7) } else { statement.bindNull(at: 7) }
        statement.bind(version.contentDigest, at: 8)
        statement.bind(version.item, at: 9)
    }

    private func versions(from statement: SQLiteStatement) throws(KeychainFailure) -> [LiveVersion] {
        defer { statement.reset() }
        var versions: [LiveVersion] = []
        while try statement.step() { versions.append(try version(in: statement)) }
        return versions
    }

    private func version(in statement: SQLiteStatement) throws(KeychainFailure) -> LiveVersion {
        LiveVersion(
            reference: try statement.reference(at: 0), name: try statement.required(ItemName.self, at: 4), lane: try statement.lane(at: 5),
            date: statement.isNull(at: 6) ? nil : statement.real(at: 6), contentDigest: statement.identifier(at: 7),
            item: statement.identifier(at: 8))
    }

    // MARK: Pending versions

    func pendingVersions(in lane: Lane, limit: Int) throws(KeychainFailure) -> [PendingVersion] {
        let statement = try connection.statement(.pendingInLane)
        statement.bind(Int64(lane.rawValue), at: 1)
        statement.bind(Int64(limit), at: 2)
        return try pendingVersions(from: statement)
    }

    func pendingVersionCount() throws(KeychainFailure) -> Int { try count(.pendingVersionCount) }

    func pendingVersion(_ id: SyncVersionID) throws(KeychainFailure) -> PendingVersion? {
        let statement = try connection.statement(.pendingByID)
        statement.bind(id, at: 1)
        return try pendingVersions(from: statement).first
    }

    func pendingVersions(named name: ItemName) throws(KeychainFailure) -> [PendingVersion] {
        let statement = try connection.statement(.pendingByName)
        statement.bind(name, at: 1)
        return try pendingVersions(from: statement)
    }

    func insert(_ version: PendingVersion) throws(KeychainFailure) {
        let statement = try connection.statement(.insertPending)
        statement.bind(version.id, at: 1)
        statement.bind(version.name, at: 2)
        statement.bind(Int64(version.lane.rawValue), at: 3)
        statement.bind(version.isDeletion, at: 4)
        let replaced = SQLiteStatement.Blob(index: 5, bytes: ReplacedVersions.encoded(version.replaced))
        try statement.withBound([replaced]) { () throws(KeychainFailure) in try statement.run() }
    }

    func removePending(_ id: SyncVersionID) throws(KeychainFailure) {
        let statement = try connection.statement(.removePending)
        statement.bind(id, at: 1)
        try statement.run()
    }

    private func pendingVersions(from statement: SQLiteStatement) throws(KeychainFailure) -> [PendingVersion] {
        defer { statement.reset() }
        var versions: [PendingVersion] = []
        while try statement.step() {
            guard let replaced = ReplacedVersions.decoded(statement.bytes(at: 4)) else { throw Self.ledgerDamaged }
            versions.append(
                PendingVersion(
                    id: try statement.required(SyncVersionID.self, at: 0), name: try statement.required(ItemName.self, at: 1),
                    lane: try statement.lane(at: 2), isDeletion: statement.integer(at: 3) != 0, replaced: replaced))
        }
        return versions
    }
}
