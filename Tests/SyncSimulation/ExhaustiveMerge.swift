// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import SyncCore

/// Tries every schedule of a few devices with one item, up to a number of steps: put, delete, publish, read.
///
/// After every step it lets all devices publish and read everything, and compares each with {published} − {replaced}. States that differ only
/// in which device is which are tried once. That is sound because versions and batches are named in the order of their creation, so that no
/// device's name is in the state.
package struct ExhaustiveMerge {
    package private(set) var stateCount = 0
    package private(set) var failures: [String] = []
    private let deviceCount: Int
    private let stepCount: Int
    private var seen: [[UInt64]: Int] = [:]

    private struct Batch {
        let author: Int
        let origin: Origin
        let records: [VersionRecord]
    }

    /// The disks of all devices and what they have published.
    private struct World {
        var disks: [MemoryLedger.State]
        var batches: [Batch] = []
        var versionCount: UInt64 = 0
        var schedule: [String] = []
    }

    private enum Step {
        case put(Int)
        case delete(Int)
        case publish(Int)
        case read(Int, Int)
    }

    private static let name = 1

    package init(deviceCount: Int = 4, stepCount: Int = 9) {
        self.deviceCount = deviceCount
        self.stepCount = stepCount
    }

    package mutating func run() {
        explore(World(disks: Array(repeating: MemoryLedger.State(), count: deviceCount)), remaining: stepCount)
    }

    private mutating func explore(_ world: World, remaining: Int) {
        guard failures.count < 3 else { return }
        let key = Self.key(world)
        if let earlier = seen[key], earlier >= remaining { return }
        if seen[key] == nil {
            stateCount += 1
            check(world)
        }
        seen[key] = remaining
        guard remaining > 0 else { return }
        for step in steps(world) {
            var next = world
            perform(step, &next)
            explore(next, remaining: remaining - 1)
        }
    }

    private func steps(_ world: World) -> [Step] {
        var steps: [Step] = []
        var isUntouchedTried = false
        for device in world.disks.indices {
            let disk = world.disks[device]
            // Of devices that have done nothing, one stands for all.
            let isUntouched = disk.read.isEmpty && disk.rows.isEmpty && disk.live.isEmpty && disk.changes.isEmpty && disk.pending.isEmpty
            if isUntouched && isUntouchedTried { continue }
            isUntouchedTried = isUntouchedTried || isUntouched
            steps.append(.put(device))
            if !disk.rows.isEmpty { steps.append(.delete(device)) }
            if !disk.changes.isEmpty || !disk.pending.isEmpty { steps.append(.publish(device)) }
            for (index, batch) in world.batches.enumerated() where canRead(disk, batch) { steps.append(.read(device, index)) }
        }
        return steps
    }

    private func canRead(_ disk: MemoryLedger.State, _ batch: Batch) -> Bool {
        guard !disk.read.contains(batch.origin) else { return false }
        return batch.origin.number == 1 || disk.read.contains { $0.log == batch.origin.log && $0.number == batch.origin.number - 1 }
    }

    private mutating func perform(_ step: Step, _ world: inout World) {
        world.schedule.append("\(step)")
        do {
            switch step {
            case .put(let device):
                world.versionCount += 1
                var disk = world.disks[device]
                let row = disk.rows.first
                let item = row?.key ?? Identifier128(high: 2, low: world.versionCount)
                let content = SimulatedContent(
                    name: Self.name, accessibility: .afterFirstUnlock, date: (row?.value.content.date ?? 0) + 1, value: world.versionCount)
                disk.rows[item] = MemoryLedger.Row(
                    content: content, revision: SyncVersionID(Identifier128(high: 0, low: world.versionCount)))
                disk.changes[item] = .written
                world.disks[device] = disk
            case .delete(let device):
                guard let item = world.disks[device].rows.keys.first else { return }
                world.disks[device].rows[item] = nil
                world.disks[device].changes[item] = .deleted
            case .publish(let device): try publish(device, &world)
            case .read(let device, let index): try read(device, world.batches[index], &world)
            }
        } catch {
            failures.append("\(world.schedule): \(error)")
        }
    }

    private func publish(_ device: Int, _ world: inout World) throws {
        let ledger = MemoryLedger()
        ledger.state = world.disks[device]
        var merge = LocalMerge(SyncTransaction(ledger: ledger, items: ledger))
        try merge.fold()
        let pending = ledger.state.pending
        if !pending.isEmpty {
            let number = UInt64(world.batches.count { $0.author == device }) + 1
            // The log is named by its first batch, so that the name does not depend on the device.
            let first = world.batches.first { $0.author == device }?.origin.log
            let log = first ?? LogID(Identifier128(high: 0, low: UInt64(world.batches.count)))
            let origin = Origin(log: log, number: number, hash: Identifier128(high: 0, low: UInt64(world.batches.count)))
            let records = try merge.publish(at: origin)
            world.batches.append(Batch(author: device, origin: origin, records: records))
        }
        world.disks[device] = ledger.state
    }

    private func read(_ device: Int, _ batch: Batch, _ world: inout World) throws {
        let ledger = MemoryLedger()
        ledger.state = world.disks[device]
        var merge = LocalMerge(SyncTransaction(ledger: ledger, items: ledger))
        try merge.fold()
        try merge.read(batch.records, at: batch.origin)
        world.disks[device] = ledger.state
    }

    /// Lets everything be published and read, and compares the devices with the definition of the state.
    private mutating func check(_ world: World) {
        var world = world
        for device in world.disks.indices { perform(.publish(device), &world) }
        for device in world.disks.indices {
            while let index = world.batches.firstIndex(where: { canRead(world.disks[device], $0) }) {
                perform(.read(device, index), &world)
            }
        }
        var expected: Set<VersionReference> = []
        for batch in world.batches {
            for record in batch.records where record.content != nil {
                expected.insert(VersionReference(id: record.id, origin: batch.origin))
            }
        }
        for batch in world.batches {
            for record in batch.records { expected.subtract(record.replaced) }
        }
        for disk in world.disks where Set(disk.live.keys) != expected || !disk.awaited.isEmpty || disk.rows.count != min(expected.count, 1)
        {
            failures.append(world.schedule.joined(separator: " "))
            return
        }
    }

    /// The state without the names of devices.
    private static func key(_ world: World) -> [UInt64] {
        var devices: [[UInt64]] = []
        for (device, disk) in world.disks.enumerated() {
            var key: [UInt64] = [0]
            for (index, batch) in world.batches.enumerated() {
                if disk.read.contains(batch.origin) { key[0] |= 1 << UInt64(index) }
                if batch.author == device { key[0] |= 1 << UInt64(index + 20) }
            }
            for version in disk.live.values.sorted(by: { $0.reference < $1.reference }) {
                key += [1, version.reference.id.value.low, version.reference.origin?.hash.low ?? 99, version.item == nil ? 0 : 1]
            }
            for reference in disk.awaited.sorted() { key += [2, reference.id.value.low, reference.origin?.hash.low ?? 99] }
            for pending in disk.pending {
                key +=
                    [3, pending.id.value.low, pending.id.value.high]
                    + pending.replaced.flatMap { [$0.id.value.low, $0.origin?.hash.low ?? 99] }
            }
            for (item, kind) in disk.changes.sorted(by: { $0.key.isOrdered(before: $1.key) }) {
                key += [4, item.low, UInt64(kind.rawValue)]
            }
            for (item, row) in disk.rows { key += [5, item.low, row.revision.value.low, row.content.date.bitPattern] }
            devices.append(key)
        }
        devices.sort { $0.lexicographicallyPrecedes($1) }
        var key = devices.flatMap { [UInt64($0.count)] + $0 }
        for batch in world.batches {
            key.append(6)
            for record in batch.records {
                key += [record.id.value.low, record.id.value.high, record.content == nil ? 0 : 1]
                key += record.replaced.flatMap { [$0.id.value.low, $0.origin?.hash.low ?? 99] }
            }
        }
        return key
    }
}
