// SPDX-License-Identifier: Apache-2.0
internal import SyncCore

/// The faults that a build with `-Xswiftc -DSYNC_PLANTED` can plant in the engine and the store; none in any other build.
package enum PlantedFaults {
    #if SYNC_PLANTED
    package static let names = PlantedFault.allCases.map(\.rawValue)

    /// Plants a fault in place of an earlier one; nil: none.
    package static func plant(_ name: String?) {
        // No simulation runs meanwhile.
        unsafe plantedFault = name.flatMap { PlantedFault(rawValue: $0) }
    }

    static func isPlanted(_ fault: PlantedFault) -> Bool { unsafe plantedFault == fault }
    #else
    package static let names: [String] = []
    package static func plant(_ name: String?) {}
    static func isPlanted(_ fault: PlantedFault) -> Bool { false }
    #endif

    /// The faults that are in the store, so that only production parts show them.
    package static let ofProductionParts: Set = [PlantedFault.captureMissesRename.rawValue]

    /// The faults that only the search with statements of removed devices shows.
    package static let ofRemovals: Set = Set([PlantedFault.voidRemovalsVoid, .doubtedRemovalsEnd].map(\.rawValue))

    /// The faults that only schedules show in which devices enter the circle again.
    package static let ofRejoins: Set = Set(
        [PlantedFault.sharesFormerVersions, .takesFormerVersionsForReplaced, .keepsFormerVersions].map(\.rawValue))

    /// The faults that only the simulation of joining shows.
    package static let ofJoining: Set = Set(
        [PlantedFault.joinWithoutCommitment, .revealsToSecondRequest, .believesUnsignedAnswers].map(\.rawValue))
}

extension Simulation {
    package static func run(seed: UInt64, options: Options) -> Report {
        var simulation = Simulation(seed: seed, options: options)
        return simulation.run()
    }
}
