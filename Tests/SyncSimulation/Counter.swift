// SPDX-License-Identifier: Apache-2.0
internal import SyncCore

/// A rare state that the simulation brings about, besides those that the engine reports.
enum SimulatedState: String, CaseIterable {
    case crashBeforeTheCommit = "crash before the commit"
    case crashAfterTheCommit = "crash after the commit"
    case interruptedCheckpoint = "crash while a checkpoint was written"
    case locked = "locked"
    case hintedBatches = "hint that names batches"
    case snapshotWithUnsentChanges = "snapshot with unsent changes"
    case snapshotRestored = "snapshot restored"
    case snapshotRestoredWithTheFolder = "snapshot restored with the folder"
    case cloned = "cloned"
    case objectLost = "object lost"
    case deviceRemoved = "device removed"
    case authorOfCheckpointRemoved = "author of a checkpoint removed with unsent changes"
    case deviceAdmittedTwice = "device admitted twice"
    case deviceAdmitted = "device admitted"
    case enteredAgain = "entered the circle again"
    case unsharedFormerVersion = "a version of a device that entered the circle again, which the circle does not have"
    case recoveredWithTheKit = "recovered with the kit"
    case cameBackAfterAYear = "came back after a year"
    case deletionsConfirmed = "deletions confirmed"
    case storageRolledBack = "storage rolled back"
    case replayedUnderAnotherName = "replayed under another name"
    case forgedAdmission = "forged admission"
    case alteredObject = "altered object"
    case batchWithAnInvalidDate = "batch with an invalid date"
    case mutualRemoval = "a removed device removed its remover"
    case forgedMark = "forged mark"
    case forgedBatch = "forged batch"
    case floodOfMarks = "batch with very many marks"
    case forgedCheckpoint = "checkpoint of a reader or of a removed device"
    case checkpointWithUselessPiece = "checkpoint of a member with a useless piece"
    case checkpointOfMadeUpBatch = "checkpoint of a member that covers a batch which never existed"
    case statementOfAnotherCircle = "statement of another circle"
    case incompleteAdmission = "admission by an owner that rests on a statement which never existed"
    case statementOfAReader = "statement of a reader"
    case laneKeyWithoutAMember = "lane key that a member does not get"
    case laneKeyOfOthers = "lane key that differs between members"
    case laneKeyForARemovedDevice = "lane key that a removed device gets"
    case laneKeyWithUselessWraps = "lane key that wraps others uselessly"
    case laneKeyWithAKnownIdentifier = "lane key with the identifier of another"
    case keptVersion = "a person kept a conflict copy"
    case batchOfARemovedDevice = "batch of a removed device"
    case deletedAndAddedAgain = "deleted and added again"
    case renamed = "renamed"
    case itemOfThisDeviceOnly = "item of this device only"
    case voidRemoval = "a removal by a removed device turned out to be void"
    case voidAdmission = "an admission by a removed device turned out to be void"
    case conflictCopiesAtRest = "conflict copies at rest"
    case newerFormat = "an object of a newer format waited"
    case invalidBatch = "an invalid batch of a member was rejected"
    case tornRead = "torn read"
    case unknownCreate = "unknown create"
    case objectRemoved = "object removed"
    case damagedRow = "row damaged"
    case absentRow = "row lost"
    case lostCopy = "conflict copy lost"
    case lostRecords = "records of changes lost"
    case readerWrote = "a program of a reader wrote"
    case unsharedAtRest = "a reader's writes at rest"
    case credentialKnown = "the name of a credential at rest"
}

/// How often each rare state was reached.
///
/// A state that is never reached is not tested.
package struct Counters: Sendable {
    /// The number by the name of each state, also of those that were not reached.
    package private(set) var counts: [String: Int]

    package init() {
        let names = SimulatedState.allCases.map(\.rawValue) + SyncObservation.allCases.map(\.rawValue)
        counts = Dictionary(uniqueKeysWithValues: names.map { ($0, 0) })
    }

    mutating func count(_ state: SimulatedState) { counts[state.rawValue, default: 0] += 1 }
    mutating func count(_ observation: SyncObservation) { counts[observation.rawValue, default: 0] += 1 }

    package mutating func add(_ other: Counters) {
        for (name, count) in other.counts { counts[name, default: 0] += count }
    }
}
