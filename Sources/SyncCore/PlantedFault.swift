// SPDX-License-Identifier: Apache-2.0

/// One-line faults that prove that the simulator finds what it looks for.
///
/// Only a build with `-D SYNC_PLANTED` contains them. In any other build `isPlanted` is false at compile time.
package enum PlantedFault: String, CaseIterable, Sendable {
    // The merge
    case versionNamedByID, foldInAnyOrder, foldAfterMerge, deleteReplacesVisibleOnly
    case clockDecides, moveReplacesLaterItem, coalescingDropsList, awaitedNotRemembered, rangedBatches
    case deletionFromAbsence, notFiniteDates, dropsLongerList, sealWithoutReadingOwnLog, sameLogAfterFork
    // Checkpoints
    case checkpointWithoutAwaited, coverageWithoutHash, removalPassPerPiece, purgeBeforeCheckpoint
    case checkpointWithPendingChanges, noHealingCheckpoint, mixedLanePieces, waitsForEarlierClock
    case keepsStalledAbsorption, appliesCoveredBatch, publishesUnfinishedCheckpoint
    // Devices and keys
    case rekeyMissesRemoval, unsignedStatements, removalVoidsUnlisted, readersMayWrite
    case keyOlderThanRemoval, wrapsForRemoved, removedLogGoesOn, unsignedMarks, chainNotChecked, incompleteStatements, batchBeforeItsKey
    case batchesInAnyOrder, seniority, voidRemovalsVoid, doubtedRemovalsEnd, replayedAdmission, readersRestoreStatements,
        keyTakenByOtherLane
    case believesBoxes, statementsOfOtherCircles, keysWithoutCheck, keepDropsList
    // Lost contents, and writes of readers
    case sharesFormerVersions, takesFormerVersionsForReplaced, keepsFormerVersions
    case sharesWritesOfReaders, takesAbsentRowsForDeleted, keepsLostContents, forgetsUnknownRows
    // Limits
    case sendsThisDeviceOnly
    // Joining
    case joinWithoutCommitment, revealsToSecondRequest, believesUnsignedAnswers
    // The store, in the simulation with the parts of the product
    case captureMissesRename
}

#if SYNC_PLANTED
/// The fault that is planted now.
// Set before a simulation begins, by a program with a single thread.
nonisolated(unsafe) package var plantedFault: PlantedFault?

@inline(__always)
func isPlanted(_ fault: PlantedFault) -> Bool { unsafe plantedFault == fault }
#else
@inline(__always)
func isPlanted(_ fault: PlantedFault) -> Bool { false }
#endif
