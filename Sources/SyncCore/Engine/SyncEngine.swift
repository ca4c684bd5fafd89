// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Synchronizes the items of one device: a pure function of events, the time, and a ledger.
///
/// Each step runs in one transaction of the store. What the engine keeps in memory is a cache: after a crash, or after a transaction that was
/// rolled back, a new engine continues from the ledger. Effects may be lost, delayed, or repeated.
package struct SyncEngine {
    let cipher: any CircleCipher
    let keys: any CircleDeviceKeys
    let limits: SyncLimits
    package let membership: Membership
    /// Whether this device is a reader, by its keys and its identifier.
    let isReader: Bool
    /// Whether local changes are sealed; not before a removal, because the removed device could open them.
    package var sealsChanges = true
    var memory = EngineMemory()

    /// `keys` are the private keys of this device, and `membership` is the circle that it has founded or was admitted to.
    package init(cipher: any CircleCipher, keys: any CircleDeviceKeys, membership: Membership, limits: SyncLimits = SyncLimits()) {
        self.cipher = cipher
        self.keys = keys
        self.membership = membership
        self.limits = limits
        isReader = membership.device == DeviceID(of: keys.publicKeys, role: .reader, cipher: cipher)
    }

    /// Handles an event, and returns what has to be done once the transaction is committed.
    ///
    /// `now` is in seconds since 2001-01-01 00:00:00 UTC. Identifiers of logs, and delays, come from `entropy`. Throws the errors of the ledger, the
    /// items, and the cipher; then the transaction must be rolled back, and the engine has forgotten what is only in memory.
    package mutating func step(
        _ event: SyncEvent, now: Double, entropy: inout some RandomNumberGenerator, in transaction: SyncTransaction
    ) throws(KeychainFailure) -> [SyncEffect] {
        var step = EngineStep(self, now: now, words: (0..<8).map { _ in entropy.next() }, transaction)
        // The step has the only reference, so that it changes large collections without a copy.
        memory = EngineMemory()
        try step.run(event)
        memory = step.engine.memory
        return step.effects
    }

    /// The roster as of the last step.
    package var roster: Roster? { memory.roster }

    /// Writes the pieces of the checkpoint that is due; nil if none is.
    package var checkpointWriter: CheckpointWriter? { memory.checkpointWriter }

    /// Whether the creation of all objects has begun that are sealed and not created, so that none waits for the end of another's.
    package var isEverythingBeingCreated: Bool { memory.isEverythingBeingCreated }

    /// The number of checkpoints that this device has given up for now.
    package var abandonedCheckpointCount: Int { memory.checkpoints.values.count(where: \.isSetAside) }

    /// The live versions whose contents this device has lost and not restored yet.
    package var lostContents: Set<VersionReference> { memory.lost }

    /// Returns a lane key, if this device can open it with the statements in its ledger.
    package mutating func openedKey(_ key: LaneKeyID, in transaction: SyncTransaction) -> SharedSecretBytes? {
        var step = EngineStep(self, now: 0, words: [], transaction)
        defer { memory = step.engine.memory }
        do throws(KeychainFailure) {
            try step.loadStatements()
            return try step.laneKey(key)
        } catch {
            return nil
        }
    }

    /// Returns the rare states that the steps since the last call reached.
    package mutating func takeObservations() -> [SyncObservation] {
        defer { memory.observations = [] }
        return memory.observations
    }
}

/// The limits of one step.
package struct SyncLimits: Sendable {
    /// The number of records of local writes that one step folds.
    package var foldedRecords = 512
    /// The number of batches that one step seals.
    package var batchesInStep = 16
    /// The number of versions whose contents one step checks, and of those that may be lost before no others are checked.
    package var checkedVersions = 512
    package var versionsInBatch = BatchContent.largestVersionCount
    package var replacedVersions = VersionRecord.largestReplacedCount
    package var marksInBatch = BatchNotes.largestMarkCount
    /// The number of boxes, and of wrapped keys, in one statement.
    package var keysInStatement = Statement.Rekeying.largestKeyCount
    /// The size of a batch with more than one version.
    package var batchByteCount = 262_144
    package var pieceByteCount = 245_760
    /// The size from which pieces of a checkpoint are written in one transaction.
    package var pieceGroupByteCount = 2 << 20
    package var concurrentReads = 64
    /// Pieces of checkpoints are as large as an object can be, so that fewer of them are read at a time.
    package var concurrentPieces = 16
    /// The size of all batches together that are kept in memory until their predecessors are read.
    ///
    /// As large as one batch, because all of them may be applied in one step.
    package var heldByteCount = 262_144
    /// The number of statements of one device that count.
    package var statementsOfDevice = 4_096
    /// The number of statements of all devices that are stored.
    package var statementsOfCircle = StatementGraph.largestCount
    /// Deletions up to this number, or up to a tenth of all items, need no confirmation.
    package var unconfirmedDeletions: UInt64 = 100
    /// A checkpoint is due when so many batches in the storage are covered by none.
    package var uncoveredBatches = 4_096
    /// No checkpoint is due because of the room that replaced versions take before so many versions are covered by none.
    package var uncoveredVersions = 256
    /// How long a batch stays in the storage after a checkpoint covers it.
    package var secondsBeforePurge: Double = 7 * 86_400
    /// How long a checkpoint stays in the storage after another one covers all that it covers.
    package var secondsBeforeReplacement: Double = 86_400

    package init() {}
}

/// What an engine remembers between steps and can compute again.
struct EngineMemory {
    var statements: [StatementHash: Statement] = [:]
    var roster: Roster?
    /// Whether an admission of this device, which is no member, is there with all that it rests on.
    var hasCompleteAdmission = false
    var areStatementsLoaded = false
    /// The statements that were read and are not evaluated yet.
    var receivedStatements: [StatementHash: Statement] = [:]
    /// The numbers of statements by author, including received ones.
    var statementCounts: [DeviceID: Int] = [:]
    var laneKeys: [LaneKeyID: SharedSecretBytes] = [:]
    /// The lanes of which all keys are opened that this device can open with these statements.
    var openedLanes: Set<Lane> = []
    /// The lanes that were not locked in the last step; nil before the first one.
    var availableLanes: Set<Lane>?

    /// The objects in the storage, by the last listing of each folder.
    ///
    /// Also batches that were created since, by this device or, as the storage has told, by others.
    var listedBatches: [ListedBatch] = []
    /// The number of batches in the last listing.
    var countAtListing = 0
    var unread = UnreadBatches()
    var listedStatements: Set<StatementHash> = []
    /// When the last listing of statements has arrived, in seconds since 2001-01-01 00:00:00 UTC.
    var statementsListedAt: Double?
    /// The listed statements that this device does not have and has not asked for, in descending order.
    var unreadStatements: [StatementHash] = []
    var listedCheckpoints: [CheckpointHash] = []
    var listedPieces: Set<ObjectHash> = []
    var listedFolders: Set<ObjectName.Folder> = []
    /// Whether the last listing of statements came after the keys were looked at.
    var areKeysDue = false
    /// Whether local writes, or a round, have come after the last sealing.
    var maySeal = false
    /// The batches of this device's own logs that it could not read when it last began or continued to wait; nil if the wait has to be looked at again.
    ///
    /// So an event costs no search of all that is missing.
    var unreadableOwn: [ListedBatch]?
    /// The pending versions that were found not to be sendable, because they are damaged or too large, since the agent was last woken.
    var unsendable: Set<SyncVersionID> = []

    /// Names whose reading has begun.
    var reading: Set<String> = []
    var creating: Set<String> = []
    /// Whether the creation of all objects has begun that are sealed and not created.
    var isEverythingBeingCreated = true
    /// Objects that are of no use, or of none yet.
    var rejected: Set<String> = []
    /// Batches that wait for a key.
    var withoutKey: Set<String> = []
    /// Checkpoints and their pieces that have to be read, the next one last.
    var neededObjects: [(name: String, byteLimit: Int)] = []
    /// Whether every object that can be read next is in `neededObjects`, and every such batch in the queue of unread batches.
    var areReadsQueued = false

    var checkpoints: [CheckpointHash: KnownCheckpoint] = [:]
    var absorption: Absorption?
    /// Writes the pieces of the checkpoint that the last steps have decided to write.
    var checkpointWriter: CheckpointWriter?
    /// The version that could not be opened when this device last wrote a checkpoint.
    var unopenable: VersionReference?
    /// Whether the storage was listed since checkpoints were looked at.
    var areCheckpointsDue = false
    var waits = Waits()

    /// Whether all rows were compared with the ledger for the check of contents that is due.
    var areRowsCompared = false
    /// The versions that this device showed when it left the circle; nil if the ledger was not asked yet.
    var former: [SyncVersionID: Origin]?
    /// Nil if the ledger was not asked yet.
    var contentCheck: ContentCheck?
    /// The live versions whose content has to be read from the storage again.
    var lost: Set<VersionReference> = []
    var observations: [SyncObservation] = []
}
