// SPDX-License-Identifier: Apache-2.0

/// A rare state that a step reached.
///
/// The simulator counts them, to prove that it reaches what it is meant to test.
package enum SyncObservation: String, CaseIterable, Sendable {
    case ignoredAwaitedVersion = "ignored a version that was known to be replaced"
    case absorbedAwaited = "absorbed an awaited version"
    case absorbedVersion = "absorbed a version"
    case removedUncontained = "removed a version that a checkpoint covers"
    case finishedAbsorption = "finished an absorption"
    case wroteCheckpoint = "wrote a checkpoint"
    case healed = "wrote a checkpoint because a batch was lost"
    case readFork = "read a second branch of a log"
    case startedNewLog = "started a new log because another machine continued the old one"
    case droppedPending = "dropped a pending version that was published already"
    case republishedPending = "published a pending version once more"
    case coalesced = "replaced a version that was never published"
    case evaluatedStatements = "evaluated the statements"
    case rekeyed = "made a new lane key"
    case boxedAgain = "boxed a lane key again"
    case wrappedLostKey = "wrapped a lane key that lost a race"
    case witnessed = "testified for statements of a removed device"
    case readRemoved = "read a batch of a removed device that another had read"
    case reportedMarks = "sealed a batch to report marks"
    case waitedForPredecessor = "waited for a predecessor"
    case waitedForKey = "waited for a lane key"
    case waitedForUnlock = "an item waited for an unlock to be shown"
    case keptEqual = "replaced a version of equal content"
    case movedItem = "replaced the versions of an old name"
    case addedAgain = "replaced the versions of an item that was deleted and added again"
    case unknownDate = "folded a write while its class was locked"
    case abandonedAbsorption = "gave up an absorption"
    case lostContent = "found that a content was lost"
    case restoredFromBatch = "restored a content from its batch"
    case restoredFromCheckpoint = "restored a content from a checkpoint"
    case keptUnshared = "kept the write of a reader"
    case comparedRows = "found rows that the ledger did not know"
}
