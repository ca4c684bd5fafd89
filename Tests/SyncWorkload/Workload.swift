// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import SyncSimulation

/// The writes of a program on one device.
struct Workload {
    private let device: Device
    private let seed: Int
    private let log: WriteLog

    /// Continues after what the log has, also if the process that wrote it was killed.
    init(_ device: Device, seed: Int) throws {
        self.device = device
        self.seed = seed
        log = try WriteLog(device.number, in: device.root)
    }

    /// Writes until so many writes are acknowledged.
    func run(until count: Int) throws {
        let earlier = try WriteLog.writes(of: device.number, in: device.root)
        var acknowledgedCount = earlier.count(where: \.isAcknowledged)
        var number = earlier.count
        var refusalCount = 0
        while acknowledgedCount < count {
            number += 1
            do throws(KeychainFailure) {
                try perform(number)
                acknowledgedCount += 1
            } catch {
                // An agent that is stopped within a transaction keeps others from writing.
                guard error.status == .notAvailable, refusalCount < 10 else { throw error }
                refusalCount += 1
                print("refused: \(error.reason)")
            }
        }
    }

    /// Writes or deletes an item that the seed and the number choose, and repeats that while the conflict copies change.
    private func perform(_ number: Int) throws(KeychainFailure) {
        var random = SeededGenerator(UInt64(seed) &* 1_000_003 &+ UInt64(device.number) &* 100_000_007 &+ UInt64(number))
        let item = random.chance(0.6) ? random.below(Item.contestedCount) : random.below(Item.count)
        let deletes = random.chance(0.15)
        var change = Change(write: "\(device.number).\(number)", item: item, log: log, device: device)
        while try !change.commit(deletes: deletes) {}
    }
}

/// A change of one item in one transaction, and what the program read in it.
private struct Change {
    let write: String
    let item: Int
    let log: WriteLog
    let device: Device

    /// The writes of the conflict copies that a deletion replaces too, by version.
    private var copies: [SyncVersionID: String] = [:]

    init(write: String, item: Int, log: WriteLog, device: Device) {
        self.write = write
        self.item = item
        self.log = log
        self.device = device
    }

    /// Returns false if the conflict copies have changed since they were read.
    ///
    /// Then nothing is written.
    mutating func commit(deletes: Bool) throws(KeychainFailure) -> Bool {
        if deletes, let shown = try Item.find(item, in: device.keychain) {
            copies = try device.writes(of: device.copies(besides: shown.reference.id))
        }
        var failure: KeychainFailure?
        var isOutdated = false
        let isCommitted = try device.keychain.transaction { transaction in
            do throws(KeychainFailure) {
                isOutdated = try !apply(deletes: deletes, in: transaction)
                return !isOutdated
            } catch {
                failure = error
                return false
            }
        }
        if let failure { throw failure }
        guard isCommitted || isOutdated else { throw KeychainFailure(.internal, "a transaction was rolled back without a reason") }
        if isCommitted { log.end(write) }
        return isCommitted
    }

    private func apply(deletes: Bool, in transaction: any Keychain) throws(KeychainFailure) -> Bool {
        let value = Item.value(of: write)
        guard let shown = try Item.find(item, in: transaction) else {
            log.begin(write, isDeletion: false, of: item, seen: [])
            _ = try transaction.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: Item.attributes(item), secret: value,
                    accessControl: AccessControl(Item.accessibility(item))))
            return true
        }
        var seen = [shown.secret.flatMap { Item.write(of: $0) } ?? "a damaged value"]
        guard deletes else {
            log.begin(write, isDeletion: false, of: item, seen: seen)
            try transaction.update(UpdateRequest(query: Item.query(item), secret: value))
            return true
        }
        // The transaction has the lock for writing, so no agent adds a copy before it ends.
        for copy in try device.copies(besides: shown.reference.id) {
            guard let write = copies[copy.reference.id] else { return false }
            seen.append(write)
        }
        log.begin(write, isDeletion: true, of: item, seen: seen)
        try transaction.delete(DeleteRequest(query: Item.query(item)))
        return true
    }
}
