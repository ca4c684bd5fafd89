// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainCore
import KeychainTestSupport
import KeychainTesting
import Testing

@testable import KeychainStore

/// Random operations on a ledger in a file and one in memory, which must give the same answers.
struct LedgerComparison {
    let seed: UInt64

    func run(_ file: SQLiteItemStore, roundCount: Int) throws {
        let memory = InMemoryItemStore(keybag: ItemStoreContract.keybag)
        try file.startSynchronizing()
        try memory.startSynchronizing()
        var generator = SeededGenerator(seed: seed)
        for round in 0..<roundCount {
            let operations = (0..<20).map { _ in Operation(&generator) }
            let failsAtEnd = generator.next() % 8 == 0
            let outcomes = [file as any SyncStore, memory].map { store in
                Self.outcome(of: store, operations, failsAtEnd: failsAtEnd)
            }
            #expect(outcomes[0] == outcomes[1], "seed \(seed), round \(round)")
        }
    }

    /// Returns the statuses of the operations, and then everything that is in the ledger.
    private static func outcome(of store: any SyncStore, _ operations: [Operation], failsAtEnd: Bool) -> [String] {
        var lines: [String] = []
        do throws(KeychainFailure) {
            _ = try store.writeLedger(ifKeybagGeneration: ItemStoreContract.keybag.generation) { writing throws(KeychainFailure) in
                for operation in operations {
                    do throws(KeychainFailure) {
                        try operation.run(writing)
                    } catch {
                        lines.append("\(error.status)")
                    }
                }
                lines += try contents(of: writing)
                if failsAtEnd { throw KeychainFailure(.decode, "thrown by the body") }
            }
        } catch {
            lines.append("\(error.status)")
        }
        do throws(KeychainFailure) {
            lines += try store.readLedger { reading throws(KeychainFailure) in try contents(of: reading) }
        } catch {
            lines.append("\(error.status)")
        }
        return lines
    }

    private static func contents(of ledger: any SyncReading) throws(KeychainFailure) -> [String] {
        var lines = ["\(try ledger.liveVersionCount())", "\(try ledger.liveVersions(after: nil, limit: .max))"]
        lines.append("\(try ledger.awaitedVersions(after: nil, limit: .max))")
        for number in 0..<Operation.nameCount {
            lines.append("\(try ledger.liveVersions(named: SampleVersions.name(number)))")
            lines.append("\(try ledger.pendingVersions(named: SampleVersions.name(number)))")
        }
        for log in try ledger.logs() { lines += ["\(try ledger.readBatches(of: log))", "\(try ledger.marks(of: log))"] }
        lines.append("\(try ledger.marksToReport(of: Operation.device, limit: 4))")
        for lane in [Lane.whenUnlocked, .afterFirstUnlock] { lines.append("\(try ledger.pendingVersions(in: lane, limit: 3))") }
        lines.append("\(try ledger.outgoingNames())")
        return lines
    }

    /// One change of a ledger, with few different values.
    private struct Operation {
        static let nameCount: UInt64 = 3
        static let device = DeviceID(Identifier128(high: 1, low: 1))

        let kind: UInt64
        let isToReport: Bool
        let version: LiveVersion
        let other: VersionReference
        let batch: ReadBatch
        let mark: LogMark
        let pending: PendingVersion

        init(_ generator: inout SeededGenerator) {
            func number(_ limit: UInt64) -> UInt64 { generator.next() % limit }
            func origin() -> Origin? {
                let log = number(4)
                return log == 3 ? nil : SampleVersions.origin(log, number: number(3) << 62)
            }
            kind = number(13)
            isToReport = number(2) == 0
            version = SampleVersions.live(
                number(5), origin: origin(), name: number(Self.nameCount), date: number(2) == 0 ? nil : 1.5, digest: nil,
                item: number(3) == 0 ? Identifier128(high: 0, low: number(4)) : nil)
            other = VersionReference(id: SampleVersions.id(number(5)), origin: origin())
            let (log, device) = (SampleVersions.log(number(3)), Self.device)
            let hash = ObjectHash(prefix: Identifier128(high: 7, low: number(3)), suffix: Identifier128(high: 0, low: 0))
            let count = number(3) << 62
            batch = ReadBatch(log: log, device: device, number: count, hash: hash, versionCount: 1)
            mark = LogMark(log: log, device: device, number: count, previous: hash, hash: hash, signature: [UInt8(number(3))])
            pending = PendingVersion(
                id: SampleVersions.id(number(6)), name: SampleVersions.name(number(Self.nameCount)),
                lane: number(2) == 0 ? .whenUnlocked : .afterFirstUnlock, isDeletion: number(2) == 0,
                replaced: (0..<number(3)).map { SampleVersions.live($0, origin: SampleVersions.origin($0), name: 1).reference })
        }

        func run(_ ledger: any SyncStoreWriting) throws(KeychainFailure) {
            switch kind {
            case 0...2: try ledger.insert(version)
            case 3: try ledger.replace(other, with: version)
            case 4: try ledger.remove(version.reference)
            case 5:
                try ledger.insertAwaited(
                    version.reference.origin == nil ? VersionReference(id: other.id, origin: batch.origin) : version.reference)
            case 6: if let origin = version.reference.origin { try ledger.removeAwaited(origin) }
            case 7: try ledger.insert(batch)
            case 8: try ledger.insert(mark, isToReport: isToReport)
            case 9: try ledger.removeMark(mark.origin)
            case 10: try ledger.insert(pending)
            case 11: try ledger.noteReported(mark.origin)
            default:
                try ledger.removePending(pending.id)
                try ledger.insert(OutgoingObject(name: "b/\(pending.id)", bytes: [1]))
                try ledger.removeOutgoing("b/\(version.reference.id)")
            }
        }
    }
}
