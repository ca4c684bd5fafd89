// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import SyncCore

/// A machine of the simulation: an engine, its disk, and the effects that are under way.
package struct SimulatedDevice {
    package let index: Int
    package let keys: any CircleDeviceKeys
    package let id: DeviceID
    package var disk: any SimulatedDisk
    package var engine: SyncEngine?
    package var membership: Membership?
    package var effects: [SyncEffect] = []
    /// The difference of the machine's clock from the true time.
    var clockOffset: Double = 0
    var snapshot: Snapshot?
    /// Switched off for more than a year.
    var isAway = false
    /// Whether deletions wait for a person.
    var asksAboutDeletions = false
    /// The index of the device that has removed this one.
    var remover: Int?
    /// Whether this device, removed, has removed its remover.
    var isAvenged = false
    /// Lost and never used again.
    var isGone = false
    /// What it showed when it left the circle that it has entered again; nil if it has not.
    var formerVersions: [SyncVersionID: Origin]?
    /// The revisions of the rows with which it left, also those that it had not sent.
    var rowsAtExit: Set<SyncVersionID> = []
    /// Removed from the circle as far as the person knows who removed it.
    package var isRemoved = false
    /// The index of the device that admitted this one; nil if the founder did at the beginning.
    var sponsor: Int?
    /// The index of another device that has admitted it at the same time; nil if none has.
    var secondSponsor: Int?
    /// Whether no other device knew of the admission when its author was removed, so that it may count or not.
    var mayBeVoid = false
    /// Whether its removal may be void, because the remover was admitted by a removed device, or by this one.
    var isRemovalInDoubt = false
    package var role = DeviceRole.owner
    package var alarms: Set<SyncAlarm> = []
    /// The log of each lane in which this machine has published the last batch.
    var logs: [Lane: LogID] = [:]
    /// The batches that the agent has listed last.
    var listedBatches: [String] = []
    /// The index of the machine of which this one is a clone.
    var original: Int?

    struct Snapshot {
        let disk: any SimulatedDisk
        let view: [String]
        let writeCount: Int
    }

    init(index: Int, keys: any CircleDeviceKeys, id: DeviceID, disk: any SimulatedDisk) {
        self.index = index
        self.disk = disk
        self.keys = keys
        self.id = id
    }

    init(cloneOf original: SimulatedDevice, index: Int) throws {
        self.init(index: index, keys: original.keys, id: original.id, disk: try original.disk.copied())
        membership = original.membership
        role = original.role
        (sponsor, secondSponsor) = (original.sponsor, original.secondSponsor)
        mayBeVoid = original.mayBeVoid
        self.original = original.index
    }

    /// Starts the agent, which continues from the ledger.
    mutating func start(cipher: any CircleCipher, limits: SyncLimits) {
        effects = []
        listedBatches = []
        engine = membership.map { SyncEngine(cipher: cipher, keys: keys, membership: $0, limits: limits) }
    }
}
