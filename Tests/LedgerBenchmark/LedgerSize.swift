// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainStore
import KeychainTestSupport

/// A ledger with many versions: its size on disk, the memory of the process, and the time of a round.
struct LedgerSize {
    let directory: String
    let count: Int

    /// The most versions that one round applies.
    private static let roundSize = 512
    private static let generation: UInt64 = 1

    func run() throws {
        let path = directory + "/ledger/keychain.db"
        _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: Self.generation)
        let store = try SQLiteItemStore(openingAt: path)
        try store.startSynchronizing()
        let clock = ContinuousClock()
        let start = clock.now
        for first in stride(from: 0, to: count, by: Self.roundSize) {
            try insert(first..<min(first + Self.roundSize, count), into: store)
        }
        let filling = clock.now - start
        try report(store, path, filling: filling)
        // One round that replaces versions in random places, as a batch of another device does.
        var rounds: [Duration] = []
        for round in 0..<20 {
            let start = clock.now
            try replace(inRound: round, of: store)
            rounds.append(clock.now - start)
        }
        let small = try (0..<20).map { round in
            let start = clock.now
            try insert(count + round..<count + round + 1, into: store)
            return clock.now - start
        }
        print("round of \(Self.roundSize) replaced versions: median \(rounds.sorted()[10]); round of one: median \(small.sorted()[10])")
        store.close()
        let byteCount = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        print("file after closing: \(byteCount / 1_000_000) MB")
    }

    private func report(_ store: SQLiteItemStore, _ path: String, filling: Duration) throws {
        let byteCount = try ["", "-wal"].reduce(0) { sum, suffix in
            sum + (try FileManager.default.attributesOfItem(atPath: path + suffix)[.size] as? Int ?? 0)
        }
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
        let found = try store.readLedger { reading throws(KeychainFailure) in try reading.liveVersionCount() }
        print("\(found) versions: \(byteCount / 1_000_000) MB on disk, \(byteCount / max(1, found)) bytes each, filled in \(filling)")
        print("memory: \(peak)")
    }

    private func insert(_ numbers: Range<Int>, into store: SQLiteItemStore) throws {
        _ = try store.writeLedger(ifKeybagGeneration: Self.generation) { writing throws(KeychainFailure) in
            for number in numbers { try writing.insert(version(UInt64(number), round: 0)) }
        }
    }

    /// Looks up, removes, and inserts what the merge does for each version of a batch.
    private func replace(inRound round: Int, of store: SQLiteItemStore) throws {
        _ = try store.writeLedger(ifKeybagGeneration: Self.generation) { writing throws(KeychainFailure) in
            for _ in 0..<Self.roundSize {
                let number = UInt64.random(in: 0..<UInt64(count))
                let old = version(number, round: 0)
                guard try !writing.isAwaited(old.reference), try writing.liveVersion(old.reference) != nil else { continue }
                try writing.remove(old.reference)
                let new = version(number, round: UInt64(round) + 1)
                guard try writing.liveVersion(new.reference) == nil else { continue }
                try writing.insert(new)
                _ = try writing.liveVersions(named: new.name)
            }
        }
    }

    /// A version in one of 16 logs, in batches of 512, with identifiers in random order.
    private func version(_ number: UInt64, round: UInt64) -> LiveVersion {
        func identifier(_ kind: UInt64) -> Identifier128 {
            let high = Self.mix(number &* 8 &+ kind &+ round << 40)
            return Identifier128(high: high, low: Self.mix(high))
        }
        let log = Identifier128(high: number / 512 % 16, low: 7)
        let batch = number / 512 + round << 32
        let origin = Origin(log: LogID(log), number: batch, hash: Identifier128(high: Self.mix(batch), low: batch))
        let name = Identifier128(high: Self.mix(number &* 8 &+ 7), low: number)
        let item = Identifier128(high: Self.mix(number &* 8 &+ 6), low: number)
        return LiveVersion(
            reference: VersionReference(id: SyncVersionID(identifier(1)), origin: origin), name: ItemName(name), lane: .whenUnlocked,
            date: 7e8 + Double(number), contentDigest: identifier(2), item: item)
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
