// SPDX-License-Identifier: Apache-2.0

/// Read access to what a store remembers about synchronization, within one transaction of the store.
///
/// Implemented by KeychainStore. It sees identifiers, hashes, and sealed bytes, never a key or a plaintext. Every list has the documented
/// order, so that the same ledger always gives the same batches.
package protocol SyncReading {
    /// Returns a value that the engine stored under this key; nil if there is none.
    func setting(_ key: SyncSetting) throws(KeychainFailure) -> [UInt8]?

    /// Returns at most `limit` records of one kind, in ascending order of item.
    func recordedChanges(_ kind: RecordedChange.Kind, limit: Int) throws(KeychainFailure) -> [RecordedChange]

    /// Returns whether records of changes may have been lost to damage.
    ///
    /// Then a row whose revision the ledger does not know was written by a program.
    func mayLackRecords() throws(KeychainFailure) -> Bool

    /// Returns the live versions of an item, in ascending order of reference.
    func liveVersions(named name: ItemName) throws(KeychainFailure) -> [LiveVersion]
    func liveVersion(_ reference: VersionReference) throws(KeychainFailure) -> LiveVersion?
    /// Returns the live version that an item shows.
    func liveVersion(shownBy item: ItemID) throws(KeychainFailure) -> LiveVersion?
    /// Returns at most `limit` live versions after `reference`, in ascending order of reference; nil: from the first.
    func liveVersions(after reference: VersionReference?, limit: Int) throws(KeychainFailure) -> [LiveVersion]
    /// Returns the number of live versions.
    func liveVersionCount() throws(KeychainFailure) -> Int
    /// Returns the names of the live versions that no item shows, each once, in ascending order.
    func namesOfHiddenVersions() throws(KeychainFailure) -> [ItemName]

    /// Returns at most `limit` local writes of a lane that are in no batch yet, oldest first.
    func pendingVersions(in lane: Lane, limit: Int) throws(KeychainFailure) -> [PendingVersion]
    func pendingVersion(_ id: SyncVersionID) throws(KeychainFailure) -> PendingVersion?
    /// Returns the pending versions of one item, oldest first.
    func pendingVersions(named name: ItemName) throws(KeychainFailure) -> [PendingVersion]

    /// Returns whether a replaced version whose batch is not read yet is remembered under this name.
    func isAwaited(_ reference: VersionReference) throws(KeychainFailure) -> Bool
    /// Returns at most `limit` awaited versions after `reference`, in ascending order; nil: from the first.
    func awaitedVersions(after reference: VersionReference?, limit: Int) throws(KeychainFailure) -> [VersionReference]

    /// Returns whether that very batch was read, or is covered by an absorbed checkpoint.
    func isRead(_ origin: Origin) throws(KeychainFailure) -> Bool
    /// Returns whether a batch with this number was read, of any branch of the log.
    func isAnyRead(_ number: UInt64, of log: LogID) throws(KeychainFailure) -> Bool
    /// Returns the read batches of a log, in ascending order of number, then hash.
    func readBatches(of log: LogID) throws(KeychainFailure) -> [ReadBatch]
    /// Returns all logs of which a batch was read or a mark is known, in ascending order.
    func logs() throws(KeychainFailure) -> [LogID]
    /// Returns the marks of a log in ascending order of origin: the newest known batch of each branch, read or not.
    func marks(of log: LogID) throws(KeychainFailure) -> [LogMark]
    /// Returns the mark of an origin; nil if there is none.
    func mark(_ origin: Origin) throws(KeychainFailure) -> LogMark?
    /// Returns at most `limit` marks of a device that no batch of this one has reported yet, in the order in which they were stored.
    func marksToReport(of device: DeviceID, limit: Int) throws(KeychainFailure) -> [LogMark]

    /// Returns whether a batch is permitted that counts although its author may be removed.
    func isPermitted(_ origin: Origin) throws(KeychainFailure) -> Bool

    /// Returns the names of the objects that still have to be created, in the order in which they were added.
    func outgoingNames() throws(KeychainFailure) -> [String]
    /// Returns the bytes of an object that still has to be created; nil if there is none of this name.
    func outgoingBytes(_ name: String) throws(KeychainFailure) -> [UInt8]?

    /// Returns all statements, in ascending order of hash.
    func statements() throws(KeychainFailure) -> [StoredStatement]
}

/// Write access to what a store remembers about synchronization, within one transaction that also writes items.
///
/// Nothing takes effect unless the transaction commits.
package protocol SyncWriting: SyncReading {
    /// Stores a value, or removes it if `value` is nil.
    func set(_ key: SyncSetting, to value: [UInt8]?) throws(KeychainFailure)

    /// Records a write of each synchronizable row whose revision is not that of the version that it shows, and returns their number.
    ///
    /// Afterwards no record is missing. If damage hides a part of the rows, returns 0 and records nothing.
    func recordUnknownRows() throws(KeychainFailure) -> Int

    /// Removes the record of an item's change.
    func eraseRecordedChange(_ item: ItemID) throws(KeychainFailure)

    /// Inserts a live version. Throws `.duplicateItem` if there is one of this reference.
    func insert(_ version: LiveVersion) throws(KeychainFailure)
    /// Replaces the live version of that reference, possibly by one with another reference.
    func replace(_ reference: VersionReference, with version: LiveVersion) throws(KeychainFailure)
    /// Removes a live version, not its content. Succeeds if there is none.
    func remove(_ reference: VersionReference) throws(KeychainFailure)

    /// Adds a pending version after all others.
    func insert(_ version: PendingVersion) throws(KeychainFailure)
    /// Removes a pending version. Succeeds if there is none.
    func removePending(_ id: SyncVersionID) throws(KeychainFailure)

    /// Remembers a replaced version until its batch is read. Succeeds if it is remembered already.
    func insertAwaited(_ reference: VersionReference) throws(KeychainFailure)
    /// Removes the awaited versions of this origin.
    func removeAwaited(_ origin: Origin) throws(KeychainFailure)

    /// Remembers a batch as read. Succeeds if it is remembered already.
    func insert(_ batch: ReadBatch) throws(KeychainFailure)
    /// Stores a mark, in place of one of the same origin.
    ///
    /// `isToReport`: whether others have to be told, because this device has read the batch.
    func insert(_ mark: LogMark, isToReport: Bool) throws(KeychainFailure)
    /// Remembers that a mark was reported. Succeeds if there is none.
    func noteReported(_ origin: Origin) throws(KeychainFailure)
    /// Removes a mark. Succeeds if there is none.
    func removeMark(_ origin: Origin) throws(KeychainFailure)

    /// Permits an unread batch that a remaining device has read. Succeeds if it is permitted already.
    func insertPermitted(_ origin: Origin) throws(KeychainFailure)
    /// Forgets that a batch is permitted. Succeeds if it is not.
    func removePermitted(_ origin: Origin) throws(KeychainFailure)

    /// Adds an object after all others, unless there is one of this name.
    func insert(_ object: OutgoingObject) throws(KeychainFailure)
    /// Removes an outgoing object. Succeeds if there is none.
    func removeOutgoing(_ name: String) throws(KeychainFailure)

    /// Stores a statement. Succeeds if it is stored already.
    func insert(_ statement: StoredStatement) throws(KeychainFailure)
}

extension SyncReading {
    /// Returns whether a program has written or deleted an item since the last folding.
    package func hasRecordedChanges() throws(KeychainFailure) -> Bool {
        for kind in RecordedChange.Kind.allCases where try !recordedChanges(kind, limit: 1).isEmpty { return true }
        return false
    }
}

/// The keys of `sync_settings`.
///
/// The values are encoded by SyncCore, those of `storage` and `removals` by KeychainSync.
package enum SyncSetting: String, CaseIterable, Sendable {
    /// The circle and this device.
    case membership
    /// Identifies the engine that made the last step, so that another one forgets what it remembers.
    case engine
    /// Where the storage of the circle is, as its program names it.
    case storage
    /// The name of this device, for people.
    case ownName
    /// The name that this device has told the others last.
    case toldName
    /// What the members have told of themselves in their batches: names and times.
    case deviceNotes
    /// The logs that this device writes.
    case ownLogs
    /// When this device published its last checkpoint.
    case ownCheckpoint
    /// The checkpoints that this device has seen, and when it saw each first.
    case seenCheckpoints
    /// The checkpoint that this device has begun to absorb.
    case absorption
    /// The deletions counted by the guard against mass deletion.
    case deletionGuard
    /// The invitations whose messages have to be removed from the storage.
    case joining
    /// The statement heads that this device counted before its admission turned out to be void.
    case voidAdmission
    /// The devices that this one has removed, and what they could read.
    case removals
    /// Since when the engine waits for lost objects.
    case waits
    /// How far the contents of all live versions were checked.
    case contentCheck
    /// The items whose visible version could not be shown while a class was locked.
    case unsettled
    /// The versions that this keychain showed when it left the circle that it has entered again.
    case former
    /// What a person has to know, until its cause is gone.
    case alarms
    /// Why the last round of an agent could not use the storage, in UTF-8; none if it could.
    case storageFailure
    /// When the credential expires by which this machine is in the circle.
    case credential
}
