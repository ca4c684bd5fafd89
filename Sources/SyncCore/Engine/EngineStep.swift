// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// One step of the engine, in one transaction.
struct EngineStep {
    var engine: SyncEngine
    let now: Double
    let ledger: any SyncWriting
    let items: any SyncItemWriting
    var merge: Merge
    var effects: [SyncEffect] = []
    private var words: [UInt64]
    /// Whether all local writes are folded.
    ///
    /// Nothing is applied before.
    var isFolded = false
    private var foldedCount = 0

    init(_ engine: SyncEngine, now: Double, words: [UInt64], _ transaction: SyncTransaction) {
        self.engine = engine
        self.now = now
        self.words = words
        ledger = transaction.ledger
        items = transaction.items
        merge = Merge(transaction)
    }

    var circle: CircleID { engine.membership.circle }
    var device: DeviceID { engine.membership.device }
    var cipher: any CircleCipher { engine.cipher }
    var limits: SyncLimits { engine.limits }

    mutating func observe(_ observation: SyncObservation) { engine.memory.observations.append(observation) }

    /// A step needs at most seven: two for each of two new logs, two for a version that is kept, and one for a delay.
    mutating func randomWord() -> UInt64 { words.popLast() ?? 0 }

    mutating func run(_ event: SyncEvent) throws(KeychainFailure) {
        try loadStatements()
        let waits = engine.memory.waits
        try noteAvailableLanes()
        // The statements that make this device a reader may not be read yet.
        merge.sharesWrites = !(engine.isReader || ownRole == .reader) || isPlanted(.sharesWritesOfReaders)
        merge.former = try formerVersions()
        try compareRows()
        let foldsFirst = !isPlanted(.foldAfterMerge)
        if foldsFirst { try fold() }
        // Whatever else happens is judged by all statements that are known.
        if !event.isOfStatement { try addReceivedStatements() }
        switch event {
        case .wake:
            try settleWaiting()
            effects += [.list(.statements), .list(.batches), .list(.checkpoints), .list(.pieces)]
            if try InvitationRecords.isCleaningDue(now: now, in: ledger) { effects.append(.list(.joinMessages)) }
            // Nothing else is read before this round's statements are known, and nothing is decided by the listings of an earlier round.
            engine.memory.listedFolders = []
            engine.memory.reading = []
            engine.memory.areReadsQueued = false
            engine.memory.creating = []
            engine.memory.unsendable = []
        case .itemsChanged:
            engine.memory.unsendable = []
            setNothingAside()
            try settleWaiting()
            beginSealing()
        case .listed(let folder, let names): try noteListing(folder, names)
        case .appeared(let names): try noteAppearance(of: names)
        case .read(let name, let bytes):
            engine.memory.reading.remove(name)
            // Until the next listing, an object that is not there or of no use is not read again.
            if bytes == nil { engine.memory.rejected.insert(name) }
            if isFolded || isPlanted(.foldAfterMerge), let bytes {
                try receive(name, bytes)
            } else if bytes != nil {
                // It is asked for again.
                engine.memory.areReadsQueued = false
                if event.isOfStatement { findUnreadStatements() }
            }
        case .created(let name):
            engine.memory.creating.remove(name)
            if case .batch(let device, let origin)? = ObjectName(name) { addListed([ListedBatch(device: device, origin: origin)]) }
            try ledger.removeOutgoing(name)
        case .failed(let name):
            // Neither an object that cannot be created, because the storage is full, nor one that cannot be read is tried again before the next round.
            if engine.memory.reading.remove(name) != nil { engine.memory.rejected.insert(name) }
        case .command(let command): try perform(command)
        case .checkpoint(let outcome): try endCheckpoint(outcome)
        }
        if !engine.memory.receivedStatements.isEmpty, !isReadingStatements { try addReceivedStatements() }
        if isFolded { try receiveReleased() }
        if !foldsFirst { try fold() }
        if isFolded {
            // A version that a person has kept is shown at the end of the step.
            if !event.isCommand { try checkContents() }
            if engine.memory.areKeysDue, areStatementsRead {
                engine.memory.areKeysDue = false
                try boxMissingKeys()
                try noteCredentials()
                try noteVoidAdmission()
            }
            // What is found meanwhile is sealed in the next round, which begins once all calls of this one have ended: an agent that asked for the
            // statements at once would, while programs write, come to nothing else.
            if foldedCount > 0, !event.beginsRound, !engine.memory.maySeal { effects.append(.wake(at: now)) }
            try sealPending()
            try maintainAbsorption()
        } else {
            effects.append(.wake(at: now))
        }
        try settle()
        try noteLosses()
        try requestReads()
        if isFolded { try maintainCheckpoints() }
        try publish()
        if engine.memory.waits != waits { try ledger.set(.waits, to: engine.memory.waits.encoded) }
        engine.memory.observations += merge.observations
    }

    private mutating func formerVersions() throws(KeychainFailure) -> [SyncVersionID: Origin] {
        if let former = engine.memory.former { return former }
        let former = try FormerVersions(in: ledger)?.origins ?? [:]
        engine.memory.former = former
        return former
    }

    private mutating func fold() throws(KeychainFailure) {
        (foldedCount, isFolded) = try merge.foldLocalWrites(limit: limits.foldedRecords)
    }

    /// Shows what changed, and remembers the items that have to wait for an unlock, or until all local writes are folded.
    ///
    /// Before that, a program may have added a row that the ledger does not know.
    mutating func settle() throws(KeychainFailure) {
        let waiting = isFolded || isPlanted(.foldAfterMerge) ? try merge.settle() : try merge.unsettledNames()
        guard !waiting.isEmpty else { return }
        let setting = try ledger.setting(.unsettled)
        let earlier = try stored { () throws(FormatError) in try StoredList.names(setting) }
        try ledger.set(.unsettled, to: StoredList.encoded(Set(waiting + earlier).sorted()))
    }

    private mutating func settleWaiting() throws(KeychainFailure) {
        guard isFolded, let bytes = try ledger.setting(.unsettled) else { return }
        for name in try stored({ () throws(FormatError) in try StoredList.names(bytes) }) { merge.touch(name) }
        try ledger.set(.unsettled, to: nil)
    }

    /// Creates what is sealed and not created yet: statements, then batches and pieces, then checkpoints.
    ///
    /// A batch whose key was never published, because the machine was restored from a snapshot in between, would be lost for everybody.
    private mutating func publish() throws(KeychainFailure) {
        let names = try removeUnfinishedCheckpoint(ledger.outgoingNames()).map { (name: $0, rank: Self.publicationRank($0)) }
        defer { engine.memory.isEverythingBeingCreated = names.allSatisfy { engine.memory.creating.contains($0.name) } }
        guard let first = names.map(\.rank).min() else { return }
        var logs: Set<Substring> = []
        for (name, rank) in names where rank == first || isPlanted(.batchBeforeItsKey) {
            // One batch of a log at a time: a gap that a restored machine leaves would hide all later ones.
            if rank == 1, name.utf8.first == UInt8(ascii: "b") {
                guard logs.insert(name.prefix(68)).inserted || isPlanted(.batchesInAnyOrder) else { continue }
            }
            guard engine.memory.creating.count < limits.concurrentReads else { return }
            guard engine.memory.creating.insert(name).inserted, let bytes = try ledger.outgoingBytes(name) else { continue }
            effects.append(.create(name, bytes))
        }
    }

    private static func publicationRank(_ name: String) -> Int {
        switch name.utf8.first {
        case UInt8(ascii: "m"): 0
        case UInt8(ascii: "c"): 2
        default: 1
        }
    }

    /// Forgets the keys of lanes that were locked, and begins a round once one is unlocked: anything may have waited for it.
    private mutating func noteAvailableLanes() throws(KeychainFailure) {
        var lanes: Set<Lane> = []
        for lane in Lane.allCases where try items.isAvailable(lane) { lanes.insert(lane) }
        if let before = engine.memory.availableLanes, !lanes.isSubset(of: before) { effects.append(.wake(at: now)) }
        engine.memory.availableLanes = lanes
        // It has the keys of both lanes.
        if lanes.count < Lane.allCases.count { engine.memory.checkpointWriter = nil }
        for lane in Lane.allCases where !lanes.contains(lane) {
            engine.memory.openedLanes.remove(lane)
            for record in roster.laneKeys where record.lane == lane {
                engine.memory.laneKeys[record.key] = nil
                // A key of the other lane, if a member's program has given its identifier to this one.
                for other in roster.laneKeys(named: record.key) { engine.memory.openedLanes.remove(other.lane) }
            }
        }
    }

    /// Parses what was in the storage; nil if it is malformed, or of a newer format, which a person is told.
    mutating func parsed<Value>(by author: DeviceID?, _ parse: () throws(FormatError) -> Value) -> Value? {
        do throws(FormatError) {
            return try parse()
        } catch {
            if error == .newer { effects.append(.alarm(.newerFormat(author))) }
            return nil
        }
    }

    /// Parses a value of the ledger, which this program wrote.
    func stored<Value>(_ parse: () throws(FormatError) -> Value) throws(KeychainFailure) -> Value {
        do throws(FormatError) {
            return try parse()
        } catch {
            throw KeychainFailure(
                .decode, "the keychain's record of synchronization is \(error == .newer ? "of a newer version" : "damaged")",
                subject: .store, cause: error == .newer ? .newerVersion : .damaged)
        }
    }
}
