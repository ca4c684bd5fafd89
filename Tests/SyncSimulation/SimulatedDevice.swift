// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
package import SyncCore

/// A machine of the simulation: an engine, its disk, and the effects that are under way.
package struct SimulatedDevice {
    package let index: Int
    package let keys: FakeDeviceKeys
    package let id: DeviceID
    package let ledger = MemoryLedger()
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
    /// Removed from the circle as far as the person knows who removed it.
    package var isRemoved = false
    /// The index of the device that admitted this one; nil if the founder did at the beginning.
    var sponsor: Int?
    /// Whether no other device knew of the admission when its author was removed, so that it may count or not.
    var mayBeVoid = false
    package var role = DeviceRole.owner
    package var alarms: Set<SyncAlarm> = []
    /// The log of each lane in which this machine has published the last batch.
    var logs: [Lane: LogID] = [:]
    /// The index of the machine of which this one is a clone.
    var original: Int?

    struct Snapshot {
        let state: MemoryLedger.State
        let view: [String]
        let writeCount: Int
    }

    init(index: Int, keys: FakeDeviceKeys, id: DeviceID) {
        self.index = index
        self.keys = keys
        self.id = id
    }

    init(cloneOf original: SimulatedDevice, index: Int) {
        self.init(index: index, keys: original.keys, id: original.id)
        membership = original.membership
        role = original.role
        self.original = original.index
        ledger.state = original.ledger.state
    }

    /// Starts the agent, which continues from the ledger.
    mutating func start(cipher: FakeCipher, limits: SyncLimits) {
        effects = []
        engine = membership.map { SyncEngine(cipher: cipher, keys: keys, membership: $0, limits: limits) }
    }

    func row(named name: Int) -> (ItemID, MemoryLedger.Row)? {
        ledger.state.rows.first { $0.value.content.name == name && $0.value.isSynchronizable }.map { ($0.key, $0.value) }
    }
}
