// SPDX-License-Identifier: Apache-2.0

/// The faults of one run: a random subset, with random weights.
struct FaultMenu {
    var isStale: Bool
    var tears: Bool
    var isUnknown: Bool
    var isFull: Bool
    var losesRemovals: Bool
    var hasForeignFiles: Bool
    var crashes: Bool
    var locks: Bool
    var restores: Bool
    var clones: Bool
    var clocksLie: Bool
    var losesObjects: Bool
    var removesDevices: Bool
    var admitsDevices: Bool
    var hasReaders: Bool
    var equalDates: Bool
    var isHostile: Bool
    /// The storage goes back to an earlier state.
    var rollsBack: Bool
    /// Some devices have an older program, which cannot read some objects.
    var hasOldPrograms: Bool
    /// A few deletions stop until a person confirms them.
    var guardsDeletions: Bool
    /// A device is away for more than a year.
    var hasLongAbsence: Bool
    /// A person loses all devices and uses the recovery kit.
    var usesRecoveryKit: Bool
    /// A disk loses rows, copies, and records of changes.
    var damages: Bool
    /// The weight of each action, by `Action.rawValue`.
    private(set) var weights: [Int]

    init(_ random: inout SeededGenerator) {
        isStale = random.chance(0.4)
        tears = random.chance(0.3)
        isUnknown = random.chance(0.3)
        isFull = random.chance(0.2)
        losesRemovals = random.chance(0.3)
        hasForeignFiles = random.chance(0.2)
        crashes = random.chance(0.4)
        locks = random.chance(0.4)
        restores = random.chance(0.4)
        clones = random.chance(0.15)
        clocksLie = random.chance(0.3)
        losesObjects = random.chance(0.15)
        removesDevices = random.chance(0.25)
        admitsDevices = random.chance(0.2)
        hasReaders = random.chance(0.2)
        equalDates = random.chance(0.2)
        isHostile = random.chance(0.2)
        rollsBack = random.chance(0.15)
        hasOldPrograms = random.chance(0.15)
        guardsDeletions = random.chance(0.1)
        hasLongAbsence = random.chance(0.15)
        usesRecoveryKit = random.chance(0.1)
        damages = random.chance(0.2)
        var weights = [20, 60, 12, 12, 2, 2, 1, 1, 1, 1, 2, 1, 4]
        for index in weights.indices where random.chance(0.5) {
            weights[index] = weights[index] * (random.chance(0.5) ? 3 : 1) / (random.chance(0.3) ? 3 : 1)
        }
        // Rare states need several restored snapshots, several changes of the members, or lost objects and a wrong clock, in one run.
        if restores, random.chance(0.3) { weights[5] *= 6 }
        if removesDevices, isHostile || random.chance(0.3) { weights[9] *= 6 }
        if removesDevices, isHostile {
            weights[10] *= 6
            // A machine that is restored or cloned may have forgotten a removal, and is judged less strictly.
            restores = false
            clones = false
            if random.chance(0.4) { usesRecoveryKit = true }
        }
        if clocksLie, random.chance(0.3) {
            losesObjects = true
            weights[7] *= 6
        }
        // A device that waits for an object of its own, and is lost with what it has not sent.
        if restores, losesObjects, random.chance(0.3) {
            usesRecoveryKit = true
            weights[9] *= 6
        }
        self.weights = weights
    }

    mutating func restrict(to schedules: Simulation.Schedules) {
        switch schedules {
        case .all: return
        case .benign:
            removesDevices = false
            hasOldPrograms = false
            guardsDeletions = false
        case .rejoins:
            (removesDevices, admitsDevices, hasReaders) = (true, true, false)
            weights[9] = 20
        case .removals:
            removesDevices = true
            admitsDevices = true
            // Changes of the members.
            weights[9] = 20
        }
        (restores, clones, losesObjects, isHostile) = (false, false, false, false)
        (rollsBack, usesRecoveryKit, damages) = (false, false, false)
    }
}
