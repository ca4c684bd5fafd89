// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Devices that leave the circle and enter it again, with new keys and the items that they have.
extension Simulation {
    /// Lets a device leave the circle, programs write on it, and `owner` admit it again.
    ///
    /// One device never leaves: if all did that have a key, no device could read what is sealed under it.
    mutating func rejoin(_ owner: Int) throws {
        guard devices[owner].formerVersions == nil else { return }
        let others = remaining.filter {
            $0 != owner && devices[$0].disk.lockedLanes.isEmpty && !devices[$0].isAway && !devices[$0].mayBeVoid
        }
        guard devices.count < options.deviceCount + 3, remaining.count > 2, let leaver = random.element(of: others),
            let circle = devices[leaver].membership?.circle, try hasKnownOutcomes(leaver)
        else { return }
        if random.chance(0.3) { step(leaver, .itemsChanged) }
        // It learns of that before it leaves, or never.
        if random.chance(0.3), devices.filter({ $0.isRemoved }).count < 2, try isDispensable(leaver) {
            remove(leaver, by: owner)
            devices[leaver].clockOffset = 0
            if random.chance(0.5) { runToRest(leaver) }
        }
        let former = try devices[leaver].disk.read { ledger throws(KeychainFailure) in try FormerVersions(leaving: ledger) }
        let joiner = devices.count
        try addDevice(joiner)
        devices[joiner].sponsor = owner
        devices[joiner].disk = try devices[leaver].disk.copied()
        try devices[joiner].disk.leaveCircle()
        devices[leaver].isGone = true
        // What only this device knew of an admission is gone with it.
        noteDoubtfulAdmissions()
        let rows = try devices[joiner].disk.restingState().rows.map(\.revision)
        oracle.noteExit(of: leaver, as: joiner, with: Set(rows))
        devices[joiner].rowsAtExit = Set(rows)
        for _ in 0..<random.below(3) { try write(joiner) }
        try devices[joiner].disk.leaveCircle()
        let statements = try admit(joiner, by: owner)
        guard statements.contains(where: { Self.isAdmission($0, of: devices[joiner].id) }) else {
            // The owner has learned in the same step that it was removed.
            devices[joiner].isGone = true
            return
        }
        try join(joiner, circle, statements)
        try devices[joiner].disk.transaction(rollsBack: false) { transaction throws(KeychainFailure) in
            try former?.store(in: transaction.ledger)
        }
        devices[joiner].formerVersions = former?.origins ?? [:]
        if options.isTraced { note("device \(leaver) leaves, and is admitted as \(joiner) by \(owner)") }
        counters.count(.enteredAgain)
    }

    /// Whether other devices can read all that a device has stated, and it knows of each of its batches whether that was created.
    ///
    /// What others state rests on its statements, so a device that never publishes one is missed for ever, as one is that is lost. And a change of which it
    /// does not know that it was sent is sent once more: a limit, which the documentation names.
    private func hasKnownOutcomes(_ index: Int) throws(KeychainFailure) -> Bool {
        let names = try devices[index].disk.read { ledger throws(KeychainFailure) in try ledger.outgoingNames() }
        return names.allSatisfy { !$0.hasPrefix("m/") && storage.objects[$0] == nil }
    }
}
