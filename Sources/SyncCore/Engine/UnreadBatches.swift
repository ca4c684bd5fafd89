// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The batches in the last listing that this device has not read, and those among them that can be read next.
///
/// Any program that can write to the storage can create any number of names, so what a step costs must not grow with their number.
struct UnreadBatches {
    /// By origin, and then by the device in the name: a name may have the origin of another device's batch.
    private var all: [Origin: [ListedBatch]] = [:]
    /// Batches of this device's own logs.
    private(set) var own: Set<ListedBatch> = []
    /// Those whose predecessor was not read, by their number.
    private var successors: [LogID: [UInt64: [Origin]]] = [:]
    /// Those whose predecessor was read.
    private var reachable: Set<Origin> = []
    /// Those that a remaining device has read, so that they count even if their author was removed.
    private var permitted: Set<Origin> = []
    /// Batches that wait for another one, their predecessor.
    private var waiting: Set<ListedBatch> = []
    private var waitingFor: [Origin: [ListedBatch]] = [:]
    /// Those among them that were received and are not too large together; the others are read again.
    private var held: [ListedBatch: AuthenticBatch] = [:]
    private(set) var heldByteCount = 0
    /// Batches that were held until now, as their predecessor was read.
    private var released: [AuthenticBatch] = []
    /// Batches that may be readable, the next one last.
    private(set) var queue: [ListedBatch] = []
    /// The logs of which a batch was read since the listing.
    ///
    /// The others may wait for a key or a person, so their next batch is not of use yet.
    private var progressing: Set<LogID> = []
    /// The last batch of each log that `next(after:)` has returned.
    private var readAhead: [LogID: ListedBatch] = [:]

    mutating func insert(_ batch: ListedBatch, isOwn: Bool, isReachable: Bool, isPermitted: Bool) {
        if isOwn { own.insert(batch) }
        all[batch.origin, default: []].append(batch)
        guard all[batch.origin]?.count == 1 else { return }
        if isReachable {
            reachable.insert(batch.origin)
        } else {
            successors[batch.origin.log, default: [:]][batch.origin.number, default: []].append(batch.origin)
        }
        if isPermitted { permitted.insert(batch.origin) }
    }

    /// Queues all batches that may be readable, in ascending order of origin.
    mutating func queueAll() {
        let origins = isPlanted(.chainNotChecked) || isPlanted(.removedLogGoesOn) ? Set(all.keys) : reachable.union(permitted)
        queue = origins.sorted().reversed().flatMap { all[$0] ?? [] }
    }

    /// Queues one batch, unless it was read or cannot be read next.
    mutating func queue(_ batch: ListedBatch) {
        guard all[batch.origin]?.contains(batch) == true, isReadable(batch.origin) else { return }
        queue.append(batch)
    }

    mutating func removeNext() { _ = queue.popLast() }

    /// Returns the next batch to read of a log in which `batch` is being read, although its predecessor has not arrived yet.
    ///
    /// Nil at a fork, at the end of the log, and before a batch of the log was read.
    mutating func next(after batch: ListedBatch) -> ListedBatch? {
        let log = batch.origin.log
        let last = readAhead[log].map { max($0, batch) } ?? batch
        let (number, isOverflow) = last.origin.number.addingReportingOverflow(1)
        guard progressing.contains(log), !isOverflow, let origins = successors[log]?[number], origins.count == 1,
            let batches = all[origins[0]], batches.count == 1
        else { return nil }
        readAhead[log] = batches[0]
        return batches[0]
    }

    mutating func permit(_ origin: Origin) {
        guard let batches = all[origin], permitted.insert(origin).inserted else { return }
        queue += batches
    }

    /// Lets a batch wait; it is held if all held ones together stay below the limit, and else read again.
    mutating func wait(_ batch: AuthenticBatch, for predecessor: Origin, heldByteLimit: Int) {
        let name = batch.listed
        guard waiting.insert(name).inserted else { return }
        waitingFor[predecessor, default: []].append(name)
        guard heldByteCount + batch.byteCount <= heldByteLimit else {
            // What follows it in the log would be read in vain too.
            progressing.remove(name.origin.log)
            return
        }
        heldByteCount += batch.byteCount
        held[name] = batch
    }

    /// Returns a batch that was held until its predecessor was read.
    mutating func takeReleased() -> AuthenticBatch? { released.popLast() }

    mutating func noteRead(_ origin: Origin) {
        progressing.insert(origin.log)
        for batch in all.removeValue(forKey: origin) ?? [] { own.remove(batch) }
        reachable.remove(origin)
        permitted.remove(origin)
        for batch in waitingFor.removeValue(forKey: origin) ?? [] {
            waiting.remove(batch)
            if let received = held.removeValue(forKey: batch) {
                heldByteCount -= received.byteCount
                released.append(received)
            } else {
                queue.append(batch)
            }
        }
        // The number comes from another device, and may be the largest.
        let (next, isOverflow) = origin.number.addingReportingOverflow(1)
        guard !isOverflow else { return }
        for successor in successors[origin.log]?.removeValue(forKey: next) ?? [] {
            guard let batches = all[successor] else { continue }
            reachable.insert(successor)
            queue += batches
        }
    }

    func contains(_ origin: Origin) -> Bool { all[origin] != nil }
    func isWaiting(_ batch: ListedBatch) -> Bool { waiting.contains(batch) }
    func isReadable(_ origin: Origin) -> Bool { reachable.contains(origin) || permitted.contains(origin) }
}

/// A batch in a listing.
struct ListedBatch: Hashable, Comparable {
    let device: DeviceID
    let origin: Origin

    var name: String { ObjectName.batch(device: device, origin: origin).text }

    static func < (left: ListedBatch, right: ListedBatch) -> Bool {
        left.origin == right.origin ? left.device < right.device : left.origin < right.origin
    }
}

/// Batches in ascending order.
extension [ListedBatch] {
    /// Inserts batches, which are in ascending order too, and returns those that were not there.
    mutating func merge(_ batches: [ListedBatch]) -> [ListedBatch] {
        let added = batches.filter { batch in
            let index = firstIndex { !($0 < batch) }
            return index == endIndex || self[index] != batch
        }
        guard let first = added.first else { return [] }
        let start = firstIndex { !($0 < first) }
        let later = self[start...]
        removeSubrange(start...)
        var (index, next) = (later.startIndex, 0)
        while index < later.endIndex || next < added.count {
            if next == added.count || index < later.endIndex && later[index] < added[next] {
                append(later[index])
                index += 1
            } else {
                append(added[next])
                next += 1
            }
        }
        return added
    }

    /// Whether there is a batch of that log and number.
    func contains(_ number: UInt64, of log: LogID) -> Bool {
        let index = firstIndex { ($0.origin.log, $0.origin.number) >= (log, number) }
        return index < endIndex && self[index].origin.log == log && self[index].origin.number == number
    }

    /// Returns the first index whose element fulfills a condition that all later ones fulfill too.
    private func firstIndex(where condition: (ListedBatch) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// A batch whose signature is that of the device in its name.
struct AuthenticBatch {
    let listed: ListedBatch
    let frame: BatchFrame
    let mark: LogMark

    var byteCount: Int { frame.sealed.ciphertext.count }
}
