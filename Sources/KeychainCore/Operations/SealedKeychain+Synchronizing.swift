// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials

extension SealedKeychain {
    /// Runs `body` on the ledger and the items that synchronize, in one transaction that records no change and does not count as use.
    ///
    /// - Throws: `.unimplemented` if the store has no ledger, `.notAvailable` while synchronization is off, a failure that requires reopening if the
    ///   keybag was changed, and what `body` throws; then nothing is written.
    package func synchronize<Result>(
        _ body: (any SyncWriting, any SyncItemWriting) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let keychain = scopedToAgent
        let outcome = try syncStore().writeLedger(ifKeybagGeneration: keys.keybagGeneration) { writing throws(KeychainFailure) in
            try body(writing, keychain.rows(in: writing))
        }
        guard case .written(let result) = outcome else { throw Self.keybagChanged }
        return result
    }

    /// Runs `body` on a consistent snapshot of the ledger and the items that synchronize.
    ///
    /// Programs can write meanwhile, and so can `body`.
    ///
    /// - Throws: As `synchronize`.
    package func readSynchronized<Result>(
        _ body: (any SyncReading, any SyncItemReading) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        let keychain = scopedToAgent
        return try syncStore().readLedger { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            return try body(reading, keychain.rows(in: reading))
        }
    }

    private func syncStore() throws(KeychainFailure) -> any SyncStore {
        guard let store = store as? any SyncStore else {
            throw KeychainFailure(.unimplemented, "this keychain cannot be synchronized")
        }
        return store
    }

    private func rows(in store: some SyncStoreReading) -> any SyncItemReading { SyncRows(keychain: self, store: store) }

    private func rows(in store: some SyncStoreWriting) -> any SyncItemWriting { SyncRows(keychain: self, store: store) }
}

/// The identifiers of the rows that one transaction inserts, which follow a random one.
///
/// Neighbors share pages of the indexes. A transaction with hundreds of random identifiers writes a page of each index for each row.
private final class ConsecutiveIdentifiers {
    private var last = Identifier128.random()

    func next() -> Identifier128 {
        last = Identifier128(high: last.high, low: last.low &+ 1)
        return last
    }
}

/// The items that synchronize, of all access groups: opens rows for sending, and seals what was received.
///
/// The columns of a row are not encrypted, so each row is authenticated before it decides anything. A row that was altered is not a write or a
/// deletion by a program.
private struct SyncRows<Store: SyncStoreReading>: SyncItemReading {
    let keychain: SealedKeychain
    let store: Store
    let identifiers = ConsecutiveIdentifiers()

    func isAvailable(_ lane: Lane) throws(KeychainFailure) -> Bool {
        let accessibility: ItemAccessibility =
            switch lane {
            case .whenUnlocked: .whenUnlocked
            case .afterFirstUnlock: .afterFirstUnlock
            }
        let generation = try keychain.keys.currentGeneration(for: accessibility)
        return keychain.keys.availability(of: accessibility, generation: generation, lockEpoch: store) == .available
    }

    func localItem(_ item: ItemID) throws(KeychainFailure) -> LocalItem? {
        guard let row = try row(of: item) else { return nil }
        let header = row.header
        guard keychain.cipher.isIntact(row) else {
            // What the circle knows of it still holds.
            return try store.liveVersion(shownBy: item).map {
                LocalItem(item: item, name: $0.name, lane: $0.lane, revision: $0.reference.id)
            }
        }
        guard header.isSynchronizable, !header.isTombstone else { return nil }
        return LocalItem(
            item: item, name: try name(RowDigests(storedIn: header), header.reference.itemClass), lane: Lane(header.accessibility),
            revision: SyncVersionID(header.revision))
    }

    func summary(of item: ItemID) throws(KeychainFailure) -> ContentSummary? {
        guard let row = try row(of: item), let content = try content(of: row) else { return nil }
        return try summary(of: content)
    }

    func content(of version: LiveVersion) throws(KeychainFailure) -> SyncContent? {
        let row = if let item = version.item { try row(of: item) } else { try store.copy(of: version.reference) }
        if version.item != nil, let row, row.header.revision != version.reference.id.value { return nil }
        return try row.flatMap { row throws(KeychainFailure) in try content(of: row) }
    }

    func summary(of content: SyncContent) throws(KeychainFailure) -> ContentSummary? {
        guard let item = ReceivedItem(content) else { return nil }
        var values = item.attributes.entries
            .filter { ![.creationDate, .modificationDate].contains($0.attribute) }
            .map { ($0.attribute, $0.value) }
        // In the place of `sha1`, which no content has.
        if let secret = item.secret { values.append((.sha1, .data(secret))) }
        let digests = try RowDigests(of: item.attributes, in: content.itemClass, using: keychain.digests)
        return ContentSummary(
            name: try name(digests, content.itemClass), lane: item.lane, date: item.modificationDate,
            contentDigest: try keychain.cipher.digest(of: values, in: content.itemClass))
    }

    /// Returns the name of an item: a digest of the digests of its primary key.
    private func name(_ digests: RowDigests, _ itemClass: ItemClass) throws(KeychainFailure) -> ItemName {
        let leading = PrimaryKey.leading(of: itemClass)
        func value(_ digest: IndexDigest) -> AttributeValue { .data(Data(digest.bytes)) }
        let digest = try keychain.cipher.digest(
            of: [
                (leading.service, value(digests.service)), (leading.account, value(digests.account)),
                (.accessGroup, value(digests.remainingKey)),
            ], in: itemClass)
        return ItemName(digest)
    }

    private func row(of item: ItemID) throws(KeychainFailure) -> SealedRow? { try store.firstRow(matching: RowQuery(id: item)) }

    /// Opens a row; nil if it is damaged, or its class or access control keeps it on this device.
    private func content(of row: SealedRow) throws(KeychainFailure) -> SyncContent? {
        let header = row.header
        switch try keychain.openForWriting(row, in: store) {
        case .opened(let opened):
            guard header.isSynchronizable, !header.isTombstone, header.constraints == nil, Lane(header.accessibility) != nil else {
                return nil
            }
            var attributes = opened.attributes
            attributes[.sha1] = nil
            return SyncContent(
                itemClass: header.reference.itemClass, accessibility: header.accessibility, attributes: attributes.encoded,
                secret: opened.secret.map(Array.init))
        case .damaged, .unsupported, .needsAuthentication, .destroyed: return nil
        case .locked(let failure): throw failure
        }
    }
}

extension SyncRows: SyncItemWriting where Store: SyncStoreWriting {
    // MARK: Conflict copies

    func addCopy(_ content: SyncContent, of version: LiveVersion) throws(KeychainFailure) {
        let row = try seal(content, version, PersistentReference(itemClass: content.itemClass, id: .random()))
        try store.insertCopy(row, of: version.reference, at: keychain.clock.now())
    }

    func removeCopy(of reference: VersionReference) throws(KeychainFailure) { try store.removeCopy(of: reference) }

    func renameCopy(_ reference: VersionReference, to other: VersionReference) throws(KeychainFailure) {
        try store.renameCopy(reference, to: other)
    }

    func moveToCopy(_ item: ItemID, of version: LiveVersion) throws(KeychainFailure) {
        guard let number = try row(of: item)?.number else {
            throw KeychainFailure(.internal, "the row of a version is missing", subject: .store)
        }
        try store.copyRow(number: number, toCopyOf: version.reference, at: keychain.clock.now())
    }

    // MARK: Items

    func show(_ content: SyncContent, of version: LiveVersion, in item: ItemID?) throws(KeychainFailure) -> Placement {
        if let item, let present = try row(of: item), let number = present.number {
            let reference = PersistentReference(itemClass: content.itemClass, id: item)
            switch try keychain.openForWriting(present, in: store) {
            // A locked row is intact. Its class may have been changed to one that is available.
            case .opened, .locked:
                let row = try seal(content, version, reference)
                do throws(KeychainFailure) {
                    try keychain.removeConflictingRow(for: row, exceptNumber: number, in: store)
                } catch {
                    guard Self.isOfThisDevice(error) else { throw error }
                    return .leftAlone
                }
                try store.replace(number: number, with: row)
                return .shown(item)
            case .damaged:
                try store.quarantine(number: number, at: keychain.clock.now())
                return try insert(content, version, reference)
            case .unsupported, .needsAuthentication, .destroyed: return .leftAlone
            }
        }
        return try insert(content, version, PersistentReference(itemClass: content.itemClass, id: item ?? identifiers.next()))
    }

    /// Inserts a row, which takes over the reference of a tombstone in its place, as an item does that a program adds.
    private func insert(
        _ content: SyncContent, _ version: LiveVersion, _ reference: PersistentReference
    ) throws(KeychainFailure) -> Placement {
        let row = try seal(content, version, reference)
        let inherited: PersistentReference?
        do throws(KeychainFailure) {
            inherited = try keychain.removeConflictingRow(for: row, in: store)
        } catch {
            guard Self.isOfThisDevice(error) else { throw error }
            return .leftAlone
        }
        guard let inherited else {
            try store.insert(row)
            return .shown(reference.id)
        }
        try store.insert(try seal(content, version, inherited))
        return .shown(inherited.id)
    }

    /// Whether the row in the place of a received item stays: it is of a newer format or generation, or a program keeps it for this device alone.
    private static func isOfThisDevice(_ failure: KeychainFailure) -> Bool { [.decode, .duplicateItem].contains(failure.status) }

    func removeItem(_ item: ItemID) throws(KeychainFailure) {
        guard let row = try row(of: item), let number = row.number else { return }
        guard keychain.cipher.isIntact(row) else {
            return try store.quarantine(number: number, at: keychain.clock.now())
        }
        // A program may have kept the item for this device alone.
        if row.header.isSynchronizable, !row.header.isTombstone { try store.remove(number: number) }
    }

    /// Seals a content with its own dates, and with the version's identifier as revision, by which its later change is recognized.
    private func seal(
        _ content: SyncContent, _ version: LiveVersion, _ reference: PersistentReference
    ) throws(KeychainFailure) -> SealedRow {
        guard let item = ReceivedItem(content) else {
            throw KeychainFailure(.internal, "a content was not checked before it was stored")
        }
        var attributes = item.attributes
        return try keychain.seal(
            &attributes, secret: item.secret, reference: reference, control: AccessControl(content.accessibility),
            revision: version.reference.id.value, lockEpoch: store)
    }
}

/// A content that may become an item of this keychain.
///
/// A member of the circle made it, which may be hostile, or of a newer version.
private struct ReceivedItem {
    let attributes: ItemAttributes
    let secret: Data?
    let lane: Lane
    let modificationDate: Double

    init?(_ content: SyncContent) {
        guard content.itemClass.isPassword, let lane = Lane(content.accessibility),
            let attributes = ItemAttributes(encoded: content.attributes),
            attributes.entries.allSatisfy({ $0.attribute.belongs(to: content.itemClass) && $0.value.isOf($0.attribute.kind) }),
            attributes.flag(.synchronizable) == true, attributes.flag(.tombstone) != true, attributes[.sha1] == nil,
            attributes.text(.accessible) == content.accessibility.rawValue,
            let group = attributes.text(.accessGroup), !group.isEmpty, !Entitlements.isInternal(group),
            let modified = attributes.seconds(.modificationDate), modified.isFinite,
            attributes.seconds(.creationDate)?.isFinite == true,
            attributes.byteCount + (content.secret?.count ?? 0) <= SealedKeychain.largestItemByteCount
        else { return nil }
        self.attributes = attributes
        self.lane = lane
        secret = content.secret.map { Data($0) }
        modificationDate = modified
    }
}

extension AttributeValue {
    /// Whether an attribute of the kind can have this value.
    fileprivate func isOf(_ kind: Attribute.Kind) -> Bool {
        switch (kind, self) {
        case (.blob, .string), (.blob, .data), (.string, .string), (.accessibility, .string), (.number, .number), (.flag, .number),
            (.date, .date), (.sha1, .data), (.uuid, .data):
            true
        default: false
        }
    }
}
